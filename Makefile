# Everything a contributor runs; `make` alone lists it.

PYTHON ?= python3
VENV ?= .venv
# One on each of two cores. A third would wait less, but takes ten seconds to import, load the kernels and start its own processes.
WORKERS ?= 2
# What `make bench` runs, such as benchmarks/bench_odds.py, and what `make bench-compare` compares: the last two runs.
BENCH ?= benchmarks
RUNS ?= $(shell ls -tr .benchmarks/*/*.json 2>/dev/null | tail -n 2)
BIN := $(VENV)/bin
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)
# Modules are compiled to bytecode when they are first imported: most of numba, numpy and polars never are.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt
unexport PYTHONDONTWRITEBYTECODE
SOURCES := oddsengine oddsengine_cli.py scripts service tests benchmarks examples notebooks setup.py

# Also for the environment in which pip builds the package.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Said first where nothing is installed yet: what a target does before its own work, and how long that takes.
ifeq ($(wildcard $(VENV)/.library),)
FIRST_demo := installs the library (0.5 GB) in $(VENV) and compiles the kernels of a scan: one to two minutes, then never again
FIRST_serve := installs the library and the service (0.6 GB) in $(VENV) and compiles all kernels: three to four minutes, then never again
FIRST_test := installs all that the tests need (1.3 GB) in $(VENV) and compiles all kernels: four minutes, then never again
$(foreach goal,$(MAKECMDGOALS),$(if $(FIRST_$(goal)),$(info make $(goal) first $(FIRST_$(goal)))))
endif

.DEFAULT_GOAL := help
.PHONY: help setup fmt check test pytest test-slow test-all affected times mutate coverage kernels-current bench bench-compare soak demo serve page site dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev $(VENV)/.kernels-all ## create the virtual environment with all that development needs (quick when nothing changed)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "oddsengine needs Python 3.11 or newer; set PYTHON to one: make PYTHON=python3.12"; exit 1; }
	@echo "creating the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# What each target needs and no more: the library, the service, what the tests need, and what only some tests need.
$(VENV)/.library: pyproject.toml setup.py constraints.txt | $(VENV)/bin/python
	@echo "installing the library: numpy, numba, polars and others, 0.5 GB ..."
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.service: $(VENV)/.library
	@echo "installing what the service needs: starlette, uvicorn and others, 0.1 GB ..."
	@$(INSTALL) 'oddsengine[service]'
	@touch $@

$(VENV)/.dev: $(VENV)/.service
	@echo "installing what the tests need: pytest, mypy, pandas and others, 0.7 GB ..."
	@$(INSTALL) 'oddsengine[dev]'
	@touch $@

$(VENV)/.test-all: $(VENV)/.dev
	@echo "installing what only some tests need: cvxpy, Dask, playwright and others, 0.5 GB ..."
	@$(INSTALL) 'oddsengine[test-all]'
	@touch $@

$(VENV)/.docs: $(VENV)/.service
	@echo "installing what makes the site: sphinx and others, 0.1 GB ..."
	@$(INSTALL) 'oddsengine[docs]'
	@touch $@

$(VENV)/.bench: $(VENV)/.test-all
	@echo "installing the packages that the benchmarks compare with ..."
	@$(INSTALL) 'oddsengine[bench]'
	@touch $@

# Those of a scan, or all: a node needs most. Those whose source has not changed are kept.
$(VENV)/.kernels-%: $(shell find oddsengine -name '*.py') oddsengine/compiling/kernels.tsv $(VENV)/.library
	@$(BIN)/python -m oddsengine.commands.prebuild --for $*
	@touch $@

fmt: setup ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix --exit-zero --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

check: setup ## lint, check the format and the types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

test: check pytest ## all checks, and the tests that are not slow (five minutes on two idle cores)

pytest: setup
	TESTS=quick $(PYTEST) --times=build/times.quick

test-slow: setup $(VENV)/.test-all ## then the tests that `make test` has left out or skipped (about five minutes)
	TESTS=rest $(PYTEST) --times=build/times.rest

test-all: setup $(VENV)/.test-all check ## every test, with soaks, faults at each place, and more examples (an hour)
	TESTS=all $(PYTEST)

affected: setup ## first the tests that a change can reach: since the upstream branch, or since BASE (mostly under a minute)
	PYTHONPATH=tests $(BIN)/python -m support.affected $(BASE) > .affected
	TESTS=quick $(PYTEST) $$(cat .affected)

times: setup $(VENV)/.test-all ## record how long each test takes, which says what `make test` leaves out
	TESTS=most $(PYTEST) --times=tests/times.tsv

mutate: setup ## change the program at 200 places, one at a time, and run the tests that concern each
	$(BIN)/python tests/mutate.py

coverage: setup ## the tests once more, kernels as plain Python, and which lines they reach
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --cov=oddsengine --cov-report=term-missing:skip-covered

kernels-current: ## does the newest numba differ from the pinned one? if so, make the kernels with it and test them (NUMBA=0.68.0: with that)
	@.ci/kernels-current $(NUMBA)

# Each run is also kept in .benchmarks, by machine and commit.
bench: $(VENV)/.bench ## measure speed, ours beside the others': build/bench.json and a page of it, build/bench.md
	@mkdir -p build
	$(BIN)/python -m pytest $(BENCH) -o python_files='bench_*.py' --benchmark-enable --benchmark-only \
		--benchmark-autosave --benchmark-json=build/bench.json
	$(BIN)/python benchmarks/report.py build/bench.json > build/bench.md

bench-compare: $(VENV)/.dev ## compare the last two runs of `make bench`, or RUNS="0001 0003"
	$(BIN)/pytest-benchmark compare $(RUNS) --between=median,min

soak: setup ## ten minutes of stream clients that drop and resume, compared with the lists
	REPLAY_SECONDS=600 $(BIN)/python -m pytest -q -s tests/service/stream/test_replay.py -k drop

demo: $(VENV)/.library $(VENV)/.kernels-scan ## scan the board that comes with the package
	@$(BIN)/oddsengine scan --sample

serve: $(VENV)/.service $(VENV)/.kernels-all ## serve a made-up world on this machine, with keys to try it
	@$(BIN)/oddsengine serve --demo

page: setup $(VENV)/.test-all ## drive the page in headless Chromium (CHROMIUM=optional: skip where there is none)
	PAGE_TESTS=1 $(BIN)/python -m pytest -rs $(PAGE) tests/service/page/test_page.py tests/service/page/test_accessibility.py tests/service/page/test_stream.py tests/service/page/test_markets.py tests/service/page/test_registered.py tests/service/test_cors.py

site: $(VENV)/.docs ## build the documentation with the API reference in build/site, and check its links
	$(BIN)/python scripts/site/make_site.py

dist: $(VENV)/.test-all ## build the source distribution and the wheels in dist/, and check them
	rm -rf dist
	$(BIN)/python -m build --quiet --sdist
	ODDSENGINE_BUILD_KERNELS=0 $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz
	for version in $$(.ci/python); do \
		"$$(.ci/python $$version)" -m pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz || exit 1; \
	done
	$(BIN)/twine check --strict dist/*

clean: ## remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .coverage build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
