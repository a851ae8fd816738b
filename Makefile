# The two commands of a newcomer are `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install dev demo test test-browser lint docs notebook bench paper-page bench-methods bench-detector bench-verdicts bench-runtime bench-speed bench-serve attack dist clean

install: .venv/installed

# What training needs, and no more.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[train]'
	@touch $@

# What tests, documentation and benchmarks need besides.
dev: .venv/installed-dev

.venv/installed-dev: .venv/installed
	$(PIP) -e '.[dev]'
	@touch $@

demo: install
	$(BIN)/fcdd demo --overwrite

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A process takes up to 1.5 GB, hence at most four.
test: lint
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

# The tests of the page skip where there is no Chromium; here they must run.
test-browser: dev
	@command -v chromium > /dev/null || test $$(id -u) = 0 || { echo "needs Chromium: apt-get install chromium"; exit 1; }
	@command -v chromium > /dev/null || apt-get update -qq
	@command -v chromium > /dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium
	$(BIN)/pytest tests/browser

# The site below site/; a link that leads nowhere or a page outside the navigation is an error.
docs: dev
	$(BIN)/mkdocs build --strict --quiet

# Run the example anew and keep what it shows.
notebook: dev
	$(BIN)/python examples/execute.py

bench-serve: dev
	$(BIN)/python benchmarks/serve.py $(MODEL) --images $(IMAGES)

# A quarter of an hour against a server of its own on loopback; MINUTES=1 for a look.
attack: dev
	$(BIN)/python benchmarks/attack.py --minutes $(or $(MINUTES),15)

bench-verdicts: dev
	$(BIN)/python benchmarks/verdicts.py --data $(DATA)

bench-runtime: dev
	$(BIN)/python benchmarks/runtime.py --data $(DATA)

# DATA is one class, BEFORE a checkout of an earlier state.
bench-speed: dev
	$(BIN)/python benchmarks/speed.py --data $(DATA) --before $(BEFORE)

bench-methods: dev
	$(BIN)/python benchmarks/methods.py --data $(DATA)

bench-detector: dev
	$(BIN)/python benchmarks/detector.py --data $(DATA)

bench: dev
	$(BIN)/python benchmarks/method.py

# The tables of docs/results/paper.md from the results that are kept; nothing is run.
paper-page: dev
	$(BIN)/python benchmarks/paper_page.py

# build/ would bring files that are no longer in src into the wheel.
dist: dev
	rm -rf build dist
	$(BIN)/python -m build

clean:
	rm -rf .venv build dist site src/*.egg-info
