# metalnb: `make demo` runs the first notebook, `make test` the tests. Python 3.11+ with venv, and make, are enough.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

BIN       := $(VENV)/bin
NOTEBOOKS := $(sort $(wildcard notebooks/[0-9][0-9]_*.ipynb))
BENCHES    = $(shell grep -ls __main__ benchmarks/*.py)
PYTEST    := $(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist worksteal --max-worker-restart 0
PIP       := $(BIN)/python -m pip --quiet --disable-pip-version-check

# An extra's mark beside the environment, once it is installed; everything's, once `make ready` has installed that.
needs = $(VENV)/with-$(if $(wildcard $(VENV)/with-dev),dev,$(1))

# Another environment that the caller's shell has activated must not be taken for this one.
unexport VIRTUAL_ENV PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-all lint lab notebooks docs site labextension bench accuracy ready clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(call needs,notebooks) ## run the first notebook and print its results
	@$(BIN)/python notebooks/run.py --into build/notebooks notebooks/01_first_kernel.ipynb

test: $(call needs,test) ## run the tests that every change needs; ARGS="-k saxpy" passes options to pytest
	@$(PYTEST) -m "not long" $(ARGS)

test-long: $(call needs,test-all) ## run the other tests: every dtype and layout, random kernels, browsers, notebooks
	@$(PYTEST) -m long $(ARGS)

test-all: $(call needs,test-all) ## run all tests
	@$(PYTEST) $(ARGS)

lint: $(call needs,lint) ## check style (ruff), types (mypy) and words (tests/words.txt)
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python tests/words.py

lab: $(call needs,lab) ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

notebooks: $(call needs,notebooks) ## run every notebook and keep its outputs in the tree
	@$(BIN)/python notebooks/run.py $(NOTEBOOKS)

docs: $(call needs,test) ## write the tables of ops and of the language, and metalnb/__init__.pyi; measures errors first (ARGS=--again: reuse them)
	@$(BIN)/python tests/msl/page.py $(ARGS)
	@$(BIN)/python tests/ops_page.py
	@$(BIN)/python tests/public_stub.py

site: $(call needs,docs) ## build a site of all documents, build/site/index.html; needs no network, runs no notebook
	@$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet -c docs -d build/doctrees . build/site
	@echo "build/site/index.html"

labextension: $(call needs,lab) ## rebuild the extension for JupyterLab; needs Node.js and a network
	@$(BIN)/python labextension/words.py
	@cd labextension && npm install --no-audit --no-fund --no-package-lock --before=2025-12-01 && rm -rf prebuilt && \
		npm run build -- --core-path "$$($(abspath $(BIN))/python -c 'import jupyterlab; print(jupyterlab.__path__[0])')/staging" .

bench: $(call needs,test-all) ## measure; prints tables
	@for script in $(BENCHES); do $(BIN)/python "$$script" $(ARGS) || exit 1; done

accuracy: $(call needs,test) ## find each op's largest error over the floats: takes minutes; ARGS="--every 1 erf" tries all of them
	@$(BIN)/python tests/accuracy.py $(ARGS)

ready: $(VENV)/with-dev ## install everything that these targets need, so that none needs a network later
	@:

clean: ## remove everything that make created
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache

# Python compiles what it imports; to compile all that is installed would be a third of the time to the first picture.
$(VENV)/with-notebooks: QUICK := --no-compile

# What a target needs is installed when it is first made, beside what others have needed.
$(VENV)/with-%: pyproject.toml | $(VENV)/made
	@echo "Installing metalnb[$*] into $(VENV), once …"
	@$(PIP) install $(QUICK) --editable '.[$*]'
	@touch $@

# The interpreter is checked before anything is written; an environment that could not be finished is made again.
$(VENV)/made:
	@command -v "$(PYTHON)" >/dev/null || { echo "make: there is no $(PYTHON) here: name one, make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("metalnb needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" % v[:2])'
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@
