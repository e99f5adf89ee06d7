# `make demo` and `make test` do all the set-up that they need, once; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP_INPUTS := pyproject.toml .ci/setup.sh .ci/build-constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-all mutants attack lint figures real notebooks docs check clean
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.ready-demo ## inverse dynamics of the iCub humanoid, from its model to a table and a picture
	$(BIN)/nori-dyn demo

EXTRA ?= dev
PYTEST := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

test: $(VENV)/.ready-$(EXTRA) ## every law, regression and public name, in minutes; EXTRA=quick: without what only tests compare with
	$(PYTEST) -n auto --dist worksteal

test-all: $(VENV)/.ready-dev ## before a release: whole products, all robots, real logs, notebooks, site, and ten minutes of attack
	$(PYTEST) -n auto --dist worksteal --all
	$(MAKE) attack MINUTES=10

mutants: $(VENV)/.ready-mutants ## put faults into the code, and write into tests/mutants/README.md which tests find them (hours)
	OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.mutants

MINUTES ?= 30
attack: $(VENV)/.ready-dev ## try to break it, from new seeds, for MINUTES=30
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.attack --minutes $(MINUTES)

lint: $(VENV)/.ready-dev ## linter, formatter, type checker, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror nori_dyn/program/c/*.[ch]
	$(BIN)/mypy
	$(BIN)/lint-imports

figures: $(VENV)/.ready-dev ## measure the figures of the documents anew, and write them there (half an hour)
	$(BIN)/python -m benchmarks tick cpp estimation recursions counts --rounds 15 \
		--out docs/bench --paper-counts tests/data/paper_counts
	CC="gcc -mno-avx512f" $(BIN)/python -m benchmarks tick cpp --rounds 15 --out docs/bench/avx2
	$(BIN)/python -m benchmarks throughput --rounds 15 --out docs/bench/throughput
	$(BIN)/python -m benchmarks.figures docs/bench/bench.json docs/bench/avx2/bench.json docs/bench/throughput/bench.json

DATA ?= ../shared/data
real: $(VENV)/.ready-dev ## what logs of real robots tell, from the data in DATA=FOLDER: see docs/real_robots.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.real --data $(DATA)

notebooks: $(VENV)/.ready-dev ## run the notebooks, and keep what they print and draw
	$(BIN)/python -m benchmarks.notebooks

docs: $(VENV)/.ready-docs ## the documentation as a site, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

check: lint test ## what CI runs

clean: ## remove caches, build output and the demo's files (the environment stays: rm -r .venv)
	rm -rf dist build site .mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache nori_demo*
	find nori_dyn tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready-%: $(SETUP_INPUTS)
	@PYTHON="$(PYTHON)" VENV="$(VENV)" .ci/setup.sh $*
