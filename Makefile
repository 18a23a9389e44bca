# Every target sets up what it needs; none needs another to have been run by hand.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: demo test test-slow lint format bench setup clean help
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## Make .venv with everything pinned in constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "mispair needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing mispair and its tools into .venv (a minute or two the first time)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[track,dev]' 2> .venv/pip.log \
	  || { cat .venv/pip.log; exit 1; }
	@touch $@

demo: $(STAMP) ## See what mispair does, on embedded data
	@$(BIN)/mispair demo

test: $(STAMP) ## Run the tests (the slow ones are in test-slow)
	@$(BIN)/python -m pytest

test-slow: $(STAMP) ## Run the tests that take minutes
	@$(BIN)/python -m pytest -m slow

lint: $(STAMP) ## Formatting, rules, types, import directions
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP) ## Apply the formatting and the safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## Measure the hot paths, as ratios against the reference way of doing it
	@$(BIN)/python -m benchmarks

clean: ## Remove .venv and every cache
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks dist build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
