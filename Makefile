# Every task of the project is one target; CI calls the same ones. `make help` prints the comments behind ##.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup quickstart test lint live bench bench-compare bench-plan bench-plan-embedded bench-faults docs clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 21

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[embedded,parquet,postgres]" --group dev
	@touch $@

setup: $(READY) ## a virtual environment with everything, and the embedded engine's model in the user's cache
	$(BIN)/nilo engine prepare

quickstart: setup ## measure the embedded real engine at three loads and say what limits it
	$(BIN)/nilo quickstart

test: setup ## all tests, those on the embedded real engine included
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m "not live"  # they wait half of their time
	$(BIN)/python -m pytest -m live tests/live

lint: $(READY) ## format, lint, types, layer contracts, spelling, unused dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/deptry .

live: setup ## only the tests on the embedded real engine
	$(BIN)/python -m pytest -m live tests/live

bench: setup ## the project's own speed and truth, beside same-run floors (minutes; keep the machine quiet)
	$(BIN)/python -m benchmarks

bench-compare: setup ## how often a comparison cries wolf, and how often it sees one, on simulated servers (minutes)
	$(BIN)/python -m benchmarks alarms

bench-plan: setup ## plans against what engines and published measurements said, row by row, and their speed (seconds)
	$(BIN)/python -m benchmarks plan-memory plan-latency plan-speed

bench-plan-embedded: setup ## the embedded engine against its plan, calibrated by two runs of it (minutes; keep quiet)
	$(BIN)/python -m benchmarks plan-embedded

bench-faults: setup ## the diagnosis on labelled faulty services in virtual time, those it was not tuned on (minutes)
	$(BIN)/python -m benchmarks.faults all --split score

docs: $(READY) ## write the generated reference pages anew
	$(BIN)/python -m docs.generate

clean: ## remove what the other targets made
	rm -rf $(VENV) benchmarks/out benchmarks/bin
