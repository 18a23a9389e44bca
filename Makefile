# Every target sets up what it needs; none needs another to have been run by hand.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: demo test test-slow lint format bench setup setup-browser clean help
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(STAMP) ## Make .venv with everything pinned in constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "mispair needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing mispair and its tools into .venv (a minute or two the first time)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[track,dev]' 2> .venv/pip.log \
	  || { cat .venv/pip.log; exit 1; }
	@touch $@

setup-browser: $(STAMP) ## Install what the browser tests need: Playwright, and Chromium from Debian's packages
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[track,dev,browser]' 2> .venv/pip.log \
	  || { cat .venv/pip.log; exit 1; }
	@command -v chromium > /dev/null || test -n "$$MISPAIR_CHROMIUM" \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null; } \
	  || { echo "Chromium is missing; install it as root (apt-get install chromium) or set MISPAIR_CHROMIUM to its path."; exit 2; }
	@command -v chromium > /dev/null || test -n "$$MISPAIR_CHROMIUM" \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > .venv/apt.log 2>&1 \
	  || { cat .venv/apt.log; exit 1; }

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
