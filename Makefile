# All that a developer runs. Needs GNU make and a Python 3.11 or newer with venv and pip; the rest,
# a Java included where the machine has none, goes into the project's own environment.
#
#   make test ARGS="-k parse"     ARGS goes to pytest, examples/demo.py or the benchmark
#   make test PYTHON=python3.12   the Python that the environment is made with
#   make test VENV=/path/to/env   another environment (celc is installed into it)
#   make slice VENV=.venv-4.1 WITH='pyspark[connect]==4.1.0'   a slice of the tests with other packages
#   make test PROCESSES=2         how many processes share the tests; 0: pytest's own, for a debugger

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules

VENV := .venv
LOWEST := .venv-lowest
WITH :=
PROCESSES := 4
$(if $(word 2,$(VENV)),$(error VENV must be a path without spaces))
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; break; }; done)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# A stamp, because make compares times: newer than pyproject.toml means that nothing is to be done.
INSTALLED := $(VENV)/.celc-installed
PY := $(VENV)/bin/python
# $(abspath) takes a path with a space for two.
VENV_HERE := $(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))

# Spark's workers take the python3 on PATH unless told otherwise, Spark's scripts whatever Spark
# SPARK_HOME names, and Spark itself the address of the host's name, which may not resolve.
SPARK_ENV = JAVA_HOME="$$("$(PY)" tools/java.py)" && export JAVA_HOME && unset SPARK_HOME && \
	export PYSPARK_PYTHON="$(VENV_HERE)/bin/python" && \
	export PYSPARK_DRIVER_PYTHON="$$PYSPARK_PYTHON" && \
	export SPARK_LOCAL_IP="$${SPARK_LOCAL_IP:-127.0.0.1}" &&

.DEFAULT_GOAL := help
.PHONY: help venv demo test quick long slice lowest lint golden bench papers browser docs vscode dist clean notes

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

venv: $(INSTALLED) ## make .venv, with celc and all that its tests need

demo: $(INSTALLED) notes ## run both examples, in Spark and without, on a year of New York data; ARGS=--more: larger ones
	@$(SPARK_ENV) "$(PY)" examples/demo.py $(ARGS)

test: $(INSTALLED) notes ## run the test suite
	@$(SPARK_ENV) "$(PY)" -m pytest -q -m "not long" -n $(PROCESSES) --dist loadgroup \
		--no-loadscope-reorder --durations=40 --durations-min=4 $(ARGS)

# What the compiler reads, decides and writes.
QUICK = tests/automata tests/codegen tests/explain tests/parse tests/plan tests/resolve tests/verify \
	tests/test_layers.py
# Texts that nobody means well with, and how steps grow: four tenths of the time of all these tests.
SLOW = tests/automata/test_size.py tests/codegen/test_hostile.py tests/parse/test_parse_growth.py \
	tests/parse/test_parse_hostile.py tests/plan/test_growth.py

quick: PROCESSES := 3 # nothing waits for Spark: with four it takes a tenth longer
quick: $(INSTALLED) ## run the tests of the compiler alone, without Spark
	@"$(PY)" -m pytest -q -m "not long and not spark" -n $(PROCESSES) \
		--dist loadgroup --no-loadscope-reorder $(SLOW:%=--ignore=%) $(QUICK) $(ARGS)

long: $(INSTALLED) notes ## run the tests that take longer than the suite may, black on all files, and lowest
	@$(SPARK_ENV) "$(PY)" -m pytest -q -m long $(ARGS)
	@"$(PY)" -m black --check --quiet . || "$(PY)" -m black --check .
	@$(MAKE) --no-print-directory lowest

# The language in all its parts, the modules that are made, and every way to run a query on Spark.
SLICE = tests/test_conformance.py tests/codegen/test_golden.py tests/parse/test_syntax_errors.py \
	tests/resolve/test_resolve_errors.py tests/runtime/jit/test_runtime_in_text.py tests/runtime/jit/test_shared_cache.py
SLICE_ON_SPARK = tests/on_spark/test_conformance_on_spark.py tests/on_spark/test_streams.py \
	tests/on_spark/test_internal_names_on_spark.py

slice: $(INSTALLED) notes ## run a slice of the tests, for other versions (PYTHON=, WITH=, VENV=)
	@$(SPARK_ENV) "$(PY)" -m pytest -q -m "not long" $(SLICE) $(ARGS)
	@$(SPARK_ENV) CELC_TEST_SPARK=classic "$(PY)" -m pytest -q -m "not long" $(SLICE_ON_SPARK) $(ARGS)

lowest: ## run that slice with the lowest versions of all that celc needs, in .venv-lowest
	@$(MAKE) --no-print-directory slice VENV="$(LOWEST)" REQUIRED="tools/lowest.py"

lint: $(INSTALLED) ## ruff, black where ruff would change a file, and mypy; changing nothing
	@"$(PY)" -m ruff check .
	@"$(PY)" tools/layout.py
	@"$(PY)" -m mypy
	@"$(PY)" -m mypy tools/*.py examples/*.py

golden: $(INSTALLED) notes ## write the golden files anew; review them with git diff
	@$(SPARK_ENV) "$(PY)" -m pytest -q --update-golden -k golden $(ARGS)

bench: $(INSTALLED) notes ## measure; ARGS="--full --record", "--compare", "--only kernel,output"
	@$(SPARK_ENV) "$(PY)" benchmarks/suite.py $(ARGS)

papers: $(INSTALLED) notes ## make the papers' figures again; ARGS="--small", "--only cel", "--record"
	@$(SPARK_ENV) "$(PY)" benchmarks/papers/run.py $(ARGS)

browser: ## install Chromium and its driver, in which pages of HTML are tested (needs apt and root)
	@command -v apt-get >/dev/null || { echo "make: no apt-get here: install Chromium and" \
		"chromedriver in the way of this system" >&2; exit 1; }
	@apt-get update -qq && apt-get install -qq -y chromium chromium-driver >/dev/null
docs: $(INSTALLED) ## build the site of the documents into build/site; all links must lead somewhere
	@NO_MKDOCS_2_WARNING=1 "$(PY)" -m mkdocs build --strict -q -f tools/site/mkdocs.yml
	@echo "build/site/index.html; to search in it: python -m http.server -d build/site"

vscode: $(INSTALLED) ## pack the extension for VS Code into dist (needs node and npm)
	@"$(PY)" tools/vscode.py

dist: $(INSTALLED) ## build both distributions into dist, each twice to the same bytes, and check them
	@"$(PY)" tools/distributions.py

clean: ## remove what was built, and caches; .venv stays
	@rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml runtime/pyproject.toml runtime/celc_runtime/version.py
	@test -n "$(PYTHON)" || { echo "make: no python3.11, python3.12, python3.13 or new enough" \
		"python3 on PATH; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { \
		echo "make: $(PYTHON) is not a Python 3.11 or newer" >&2; exit 1; }
	@echo "making $(VENV) with celc and all it needs (the first time takes minutes)" >&2
	@test -x "$(PY)" || "$(PYTHON)" -m venv "$(VENV)"
ifdef REQUIRED
	@"$(PY)" -m pip install -qq --disable-pip-version-check $$("$(PY)" $(REQUIRED)) \
		--editable ./runtime --editable .
else
	@"$(PY)" -m pip install -qq --disable-pip-version-check --editable ./runtime \
		--editable ".[spark,dev,bench,docs]"
endif
ifneq ($(WITH),)
	@"$(PY)" -m pip install -qq --disable-pip-version-check $(WITH:%='%')
endif
	@touch "$@"

# What the caller's environment says and these targets do not follow is not passed over in silence.
notes:
	@test -z "$$VIRTUAL_ENV" || test "$$VIRTUAL_ENV" = "$(VENV_HERE)" || echo "note: using" \
		"$(VENV), not the active $$VIRTUAL_ENV (for that one: make VENV=\"\$$VIRTUAL_ENV\")" >&2
	@test -z "$$PYSPARK_PYTHON" || test "$$PYSPARK_PYTHON" = "$(VENV_HERE)/bin/python" || \
		echo "note: Spark's workers run $(PY), not PYSPARK_PYTHON=$$PYSPARK_PYTHON" >&2
	@test -z "$$SPARK_HOME" || \
		echo "note: using the Spark in $(VENV), not SPARK_HOME=$$SPARK_HOME" >&2
