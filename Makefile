# Every target sets up what it needs; none needs another to have been run by hand.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
CORE := .venv/.core
STAMP := .venv/.ready
# What the tests really run: every extra but the browser, which has a target of its own.
TOOLS := encoders,hub,tune,export,ann,serve,ray,track,dev
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow lint format bench mutants docs dist test-dist setup setup-browser clean help
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(STAMP) ## Make .venv with everything pinned in constraints.txt

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "mispair needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing mispair into .venv (a minute or two the first time)"
	@$(INSTALL) -e '.[encoders,serve]' 2> .venv/pip.log || { cat .venv/pip.log; exit 1; }
	@touch $@

$(STAMP): $(CORE)
	@echo "Installing the tools and extras the checks use"
	@$(INSTALL) -e '.[$(TOOLS)]' 2> .venv/pip.log || { cat .venv/pip.log; exit 1; }
	@touch $@

setup-browser: $(STAMP) ## Install what the browser tests need: Playwright, and Chromium from Debian's packages
	@$(INSTALL) -e '.[$(TOOLS),browser]' 2> .venv/pip.log || { cat .venv/pip.log; exit 1; }
	@command -v chromium > /dev/null || test -n "$$MISPAIR_CHROMIUM" \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null; } \
	  || { echo "Chromium is missing; install it as root (apt-get install chromium) or set MISPAIR_CHROMIUM to its path."; exit 2; }
	@command -v chromium > /dev/null || test -n "$$MISPAIR_CHROMIUM" \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > .venv/apt.log 2>&1 \
	  || { cat .venv/apt.log; exit 1; }

demo: $(CORE) ## See what mispair does, on embedded data
	@$(BIN)/mispair demo

# A machine may forbid Python to keep what it compiled; then every process of the tests would compile all of it again.
test: $(STAMP) ## Run the tests, two files at a time (JOBS=8 for more; the slow ones are in test-slow)
	@PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

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
	@$(BIN)/mispair experiments run trust --quick -o .benchmarks/trust

mutants: $(STAMP) ## Change 300 places of the source on purpose and see whether the tests notice (goes on where it was)
	@$(BIN)/python -m tools.mutants

docs: $(STAMP) ## Build the documentation into site/, and check every link of it
	@$(BIN)/python -c 'import mkdocs, mkdocstrings_handlers.python' 2> /dev/null \
	  || $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]' 2> .venv/pip.log \
	  || { cat .venv/pip.log; exit 1; }
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --clean > .venv/docs.log 2>&1 \
	  || { grep -v '^INFO' .venv/docs.log; exit 1; }
	@$(BIN)/python -m tools.check_site site

dist: $(STAMP) ## Build the wheel and the source archive into dist/
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . > .venv/build.log 2>&1 || { cat .venv/build.log; exit 1; }
	@ls dist

test-dist: dist ## Use the wheel in an empty environment, away from the checkout
	@tools/test_wheel.sh dist/*.whl $(PYTHON)

clean: ## Remove .venv and every cache
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks .mutants dist build site
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
