# The two commands of a newcomer are `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test test-browser lint bench bench-detector bench-runtime bench-serve attack dist clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: install
	$(BIN)/fcdd demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A process takes up to 1.5 GB, hence at most four.
test: lint
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

# The tests of the page skip where there is no Chromium; here they must run.
test-browser: install
	@command -v chromium > /dev/null || test $$(id -u) = 0 || { echo "needs Chromium: apt-get install chromium"; exit 1; }
	@command -v chromium > /dev/null || apt-get update -qq
	@command -v chromium > /dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium
	$(BIN)/pytest tests/browser

bench-serve: install
	$(BIN)/python benchmarks/serve.py $(MODEL) --images $(IMAGES)

# A quarter of an hour against a server of its own on loopback; MINUTES=1 for a look.
attack: install
	$(BIN)/python benchmarks/attack.py --minutes $(or $(MINUTES),15)

bench-runtime: install
	$(BIN)/python benchmarks/runtime.py --data $(DATA)

bench-detector: install
	$(BIN)/python benchmarks/detector.py --data $(DATA)

bench: install
	$(BIN)/python benchmarks/method.py

# build/ would bring files that are no longer in src into the wheel.
dist: install
	rm -rf build dist
	$(BIN)/python -m build

clean:
	rm -rf .venv build dist src/*.egg-info
