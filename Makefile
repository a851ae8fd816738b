# The two commands of a newcomer are `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test lint bench bench-detector clean

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

test: lint
	$(BIN)/pytest

bench-detector: install
	$(BIN)/python benchmarks/detector.py --data $(DATA)

bench: install
	$(BIN)/python benchmarks/method.py

clean:
	rm -rf .venv build dist src/*.egg-info
