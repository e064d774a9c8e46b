# Needs make, git and Python 3.11 or newer; everything else is installed, pinned, into $(VENV).
#
#   make run     a durable server on this machine with live sample data
#   make test    everything that can be tested here
#   make check   the quick gate, under a minute
#   make bench   the benchmarks
#   make clean   remove what these made (never ./var, which is data)

VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

# The first interpreter that is new enough and can make a virtual environment.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { command -v $$python; break; }; done)

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PINS := pyproject.toml constraints.txt

# The tests start hundreds of processes, each of which would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := run
.PHONY: run test check quick lint bench docs clean packages

run: $(VENV)/.server
	$(BIN)/seamark serve --demo $(ARGS)

test: $(VENV)/.dev packages lint
	$(BIN)/pytest $(ARGS)

# On all cores, with one process more than there are because some tests wait, and lint beside them; the full gate is not,
# because its crash tests and benchmarks want the machine for themselves.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: $(VENV)/.dev
	$(BIN)/pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal --hypothesis-profile quick -m "not slow and not crash and not bench and not browser" $(ARGS)

# What pip cannot install. Not pinned: Debian keeps only the current ones, and those are also what users have.
packages:
	@sh tests/packages.sh

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests

bench: $(VENV)/.dev
	$(BIN)/seamark bench --out bench/out $(ARGS)

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Stamp files: a second run installs nothing unless the pins moved. The build backend is installed first and pinned
# like the rest, so that no isolated build environment fetches a version of its own.
$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Seamark needs Python 3.11 or newer with its venv module" \
	"(Debian and Ubuntu: apt install python3 python3-venv); say PYTHON=/path/to/python to choose one." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt hatchling editables
	@touch $@

$(VENV)/.server: $(VENV)/.python $(PINS)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[server]'
	@touch $@

$(VENV)/.dev: $(VENV)/.python $(PINS)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@ $(VENV)/.server
