# Everything happens in .venv, from the pins in requirements/. Needed: python3 (3.11 or newer), make, git.

PYTHON ?= python3
ASK ?= What language is this project?
override ASK := $(value ASK)
export ASK

BIN := .venv/bin
ON_PATH := PATH="$(CURDIR)/$(BIN):$$PATH"
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
pins = $(shell (pwd; cat pyproject.toml requirements/$(1).txt) | cksum | tr -cd 0-9)
RUN := .venv/.run-$(call pins,run)
DEV := .venv/.dev-$(call pins,dev)

.PHONY: help run setup dev test soak coverage check format bench docs web lock clean

help:
	@echo 'make run      ask about this repository; make run ASK="..." asks something else'
	@echo 'make setup    only install what `make run` needs, into .venv'
	@echo 'make test     install the development tools and run the whole suite'
	@echo 'make coverage run it and print how much of each module it reaches, branches included'
	@echo 'make soak     run the kill and load suites whole'
	@echo 'make check    formatting, lint, types, import contracts, class names'
	@echo 'make format   put the formatting right'
	@echo 'make bench    compare with other engines'
	@echo 'make docs     build the documentation into site/'
	@echo 'make web      check and build the page, with node 20.19 or newer'
	@echo 'make lock     pin the newest allowed versions of everything'
	@echo 'make clean    remove .venv and everything built'

run: $(RUN)
	@$(BIN)/denizen ask -- "$$ASK"

setup: $(RUN)
	@echo 'Ready: make run, or $(BIN)/denizen ask "..."' >&2

dev: $(DEV)

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal

# The kill and load suites, of which `make test` runs a tenth.
soak: $(DEV)
	DENIZEN_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/cli/test_worker.py tests/sessions/test_kill.py \
		tests/worlds/chat/test_kill.py tests/worlds/chat/ledger
	DENIZEN_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal -k killed tests/worlds/chat/delivery/channels

# TESTS="tests/engine tests/actions" measures these alone. The report is printed even if a test fails.
coverage: $(DEV)
	@rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n auto --dist worksteal $(TESTS); status=$$?; \
	$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report; exit $$status

check: $(DEV)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyrefly check --summary=none
	$(BIN)/python $(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_class_names.py

format: $(DEV)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(DEV)
	$(ON_PATH) benchmarks/run

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

web: $(DEV)
	$(BIN)/python scripts/openapi.py > web/openapi.json
	cd web && npm ci && npm run types && npm run check && npm run build

COMPILE := UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet --upgrade --universal \
	--python-version 3.11 --generate-hashes --no-annotate pyproject.toml --group build

lock: $(DEV)
	$(COMPILE) --output-file requirements/run.txt
	$(COMPILE) --output-file requirements/dev.txt --group dev --extra all --constraints requirements/run.txt

clean:
	rm -rf .venv build dist site .coverage .coverage.* .hypothesis .import_linter_cache .pytest_cache .ruff_cache

# A stamp is named after the pins that it stands for and this place, as .venv holds absolute paths: when either
# changes, and only then, things are installed again.
$(RUN): | $(BIN)/python
	@echo 'Installing what Denizen needs into .venv ...' >&2
	@$(PIP) --no-deps --require-hashes -r requirements/run.txt && \
	 $(ON_PATH) $(PIP) --no-deps --no-build-isolation --editable . || { $(INSTALL_FAILED); }
	@rm -f .venv/.run-* && touch $@

$(DEV): $(RUN)
	@echo 'Installing the development tools into .venv ...' >&2
	@$(PIP) --no-deps --require-hashes -r requirements/dev.txt || { $(INSTALL_FAILED); }
	@rm -f .venv/.dev-* && touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { $(WRONG_PYTHON); }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; $(VENV_FAILED); }

WRONG_PYTHON = echo 'Denizen needs Python 3.11 or newer; this is $(PYTHON). Name another: make PYTHON=python3.12 run' >&2; exit 1
VENV_FAILED = echo 'Could not make .venv. On Debian and Ubuntu: apt install python3-venv, then run make again.' >&2; exit 1
INSTALL_FAILED = echo 'Installing failed; the message above says where. Is the package index reachable? Run make again to go on,' \
	'or make clean to start over.' >&2; exit 1
