# Each target sets up .venv when it is missing or older than what it is made from, and nothing else.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint format bench faults coverage dist sbom docs clean
.DEFAULT_GOAL := demo

demo: .venv/base.stamp          ## the main job on generated data: prints and writes what it found
	$(BIN)/dpcml demo --out dpcml-demo

test: lint                      ## everything that CI checks
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope

lint: .venv/dev.stamp           ## style, types, and imports that go downwards only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev.stamp         ## put the code into the house's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/dev.stamp          ## speed as ratios within one run; figures also go to results/bench/
	$(BIN)/python -m benchmarks evaluate --out results/bench/evaluate.json
	$(BIN)/python -m benchmarks train --out results/bench/train.json

faults: .venv/dev.stamp         ## kills, damaged files, bad input, full disks, hostile load: up to 30 minutes
	$(BIN)/python -m tests.faults.campaign --out results/reliability.json

coverage: .venv/dev.stamp       ## lines and branches that the tests run; kernels through their twins
	$(BIN)/python -m pytest --cov --cov-report term

dist: .venv/dev.stamp           ## source archive and wheel, in dist/
	$(BIN)/python -m hatchling build --directory dist

sbom:                           ## everything that the package needs, as CycloneDX, in dist/sbom.json
	mkdir -p dist
	place=$$(mktemp -d) && trap "rm -rf $$place" EXIT && $(PYTHON) -m venv $$place/package $$place/tool \
	 && $$place/package/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt . \
	 && $$place/tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom \
	 && $$place/tool/bin/cyclonedx-py environment --output-format JSON --output-file dist/sbom.json \
	      $$place/package/bin/python

docs: .venv/dev.stamp           ## the documentation site, in site/
	$(BIN)/python tools/docs_tables.py
	$(BIN)/mkdocs build --strict --quiet

clean:                          ## everything that can be made again
	rm -rf .venv site dist dpcml-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/base.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[plots]"
	touch $@

# With HASHES=1, as in the GitHub workflow, only files whose checksums are known are installed, build tools included.
.venv/dev.stamp: pyproject.toml constraints.txt constraints-hashes.txt | $(BIN)/python
ifdef HASHES
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	  --requirement constraints-hashes.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
else
	$(PIP) --editable ".[dev]"
endif
	touch .venv/base.stamp $@
