# Every target makes .venv when it is not there, and again what is in it when pyproject.toml has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
INTEROP := $(VENV)/.interop
LOWEST := .venv-lowest
DOCS := .venv-docs
SBOM := .venv-sbom
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Three, on two processors: the tests wait for processes and servers of their own for a third of the time.
WORKERS ?= 3

# What judges the inspector's pages; without npm its tests are skipped.
AXE_VERSION := 4.14.1
AXE := build/axe/node_modules/axe-core/axe.min.js

# What make test runs; the markers are described in pyproject.toml.
FAST := smoke or not (process or postgres or slow or twin or browser or interop)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

# Programs that the tests start would compile the package anew each time.
unexport PYTHONDONTWRITEBYTECODE

# What make lowest tests with, and what it runs: not what needs the kits of clients, or a model's client.
LOWEST_TOOLS := 'backports.zstd; python_version < "3.14"' blockbuster hypothesis langgraph-checkpoint-conformance \
	opentelemetry-sdk pexpect psutil pytest pytest-asyncio pytest-timeout pytest-xdist
COMMANDS := tests/cli/test_cli.py $(filter-out tests/cli/test_memory_command.py, $(wildcard tests/cli/test_*_command*.py))
PROMISES := $(addprefix tests/promises/test_, conformance.py equivalence.py)
RULES := $(wildcard tests/context/test_*.py) tests/context/governing tests/context/summary tests/context/tool_output \
	$(wildcard tests/waiting/test_*.py) tests/waiting/extract tests/waiting/understand tests/cases

.DEFAULT_GOAL := help
.PHONY: help demo chat test test-all lowest check fix bench docs sbom soak clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Play a conversation that outlives its process, and look into the database.
	@$(BIN)/python -m graphs.demo

chat: $(INSTALLED) ## Talk to the order desk.
	@$(BIN)/langmem-ext chat

test: $(DEVELOPED) ## Run the tests of every promise, on SQLite; takes a few minutes.
	LANGMEM_EXT_EXAMPLES=3 $(PYTEST) -m '$(FAST)'

test-all: test $(INTEROP) $(AXE) ## Run all tests: those of make test, and on PostgreSQL, in both modes, with programs that are killed, with clients of others.
	$(PYTEST) -m 'not ($(FAST))'

lowest: $(LOWEST)/.installed ## Test the storage and the commands with the oldest versions of everything that they claim to work with.
	$(LOWEST)/bin/python -m pytest -p no:anyio -n $(WORKERS) --dist worksteal -q tests/storage tests/ground tests/checkpointer $(PROMISES) $(RULES) tests/messages tests/threads $(COMMANDS)

check: $(DEVELOPED) ## Check format, style, types and layers.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/meta/test_layers.py

fix: $(DEVELOPED) ## Format, and mend what can be mended by machine.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python -m docs.making.pages

bench: $(DEVELOPED) ## Compare bytes, CPU and time with other checkpointers (ARGS=--all for all shapes).
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(DOCS)/.installed ## Build the documentation into build/site; its pages fetch nothing from a network.
	$(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

sbom: $(DOCS)/.installed $(SBOM)/.installed ## Write build/sbom.json (CycloneDX): all that the package with its extras installs.
	@mkdir -p build
	$(DOCS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json $(SBOM)

soak: $(INTEROP) ## Run the tests with the random ones at their full counts; takes long.
	LANGMEM_EXT_SOAK=1 $(PYTEST) --timeout 7200

clean: ## Remove .venv and what the tools keep.
	rm -rf $(VENV) $(LOWEST) $(DOCS) $(SBOM) .demo .mypy_cache .ruff_cache .hypothesis build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@echo "Making $(VENV) …"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "Installing the package …"
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --editable '.[all]'
	@touch $@

$(DEVELOPED): pyproject.toml $(INSTALLED)
	@echo "Installing what the tests and checks need …"
	@$(PIP) install --group dev
	@touch $@

$(INTEROP): pyproject.toml $(DEVELOPED)
	@echo "Installing the clients and agents of others …"
	@$(PIP) install --group interop
	@touch $@

# Pinned to the lower bounds of pyproject.toml; the oldest of them have wheels for Python 3.11 only. (anyio's pytest plugin of that time warns.)
$(LOWEST)/.installed: pyproject.toml tests/lowest.txt
	@echo "Making $(LOWEST) …"
	@rm -rf $(LOWEST)
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --constraint tests/lowest.txt --editable '.[all]' $(LOWEST_TOOLS)
	@touch $@

$(AXE):
	@! command -v npm >/dev/null || npm install --silent --no-audit --no-fund --prefix build/axe axe-core@$(AXE_VERSION) || true

$(DOCS)/.installed: pyproject.toml | $(BIN)/python
	@echo "Making $(DOCS) …"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@$(DOCS)/bin/python -m pip --disable-pip-version-check --quiet install --editable . --group docs
	@touch $@

# Nothing but what is listed.
$(SBOM)/.installed: pyproject.toml | $(BIN)/python
	@echo "Making $(SBOM) …"
	@rm -rf $(SBOM)
	@$(PYTHON) -m venv $(SBOM)
	@$(SBOM)/bin/python -m pip --disable-pip-version-check --quiet install '.[all]'
	@touch $@
