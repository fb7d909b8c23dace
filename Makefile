# `make` alone lists the targets. What is missing on the machine is said first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help venv demo test check docs format clean prerequisites
.DELETE_ON_ERROR:

PYTHON ?= python3
export PYTHON
VENV := .venv
BIN := $(VENV)/bin
# Touched when .venv holds tfy and all it needs; older than a source of the plugin, it is built anew.
STAMP := $(VENV)/.installed
NATIVE := $(shell find native -name target -prune -o -type f -print)

help: ## list the targets
	@.ci/prerequisites || echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## make .venv with tfy, its HDFS plugin, TensorFlow, Spark and the tools

demo: venv ## start a local Hadoop, put the digits on it, train on them
	env -u HADOOP_CONF_DIR $(BIN)/tfy cluster up
	env -u HADOOP_CONF_DIR $(BIN)/python examples/digits/prepare.py
	env -u HADOOP_CONF_DIR $(BIN)/tfy submit examples/digits/job.yaml --follow

test: venv ## run all tests, those on the local Hadoop included (ARGS="-k load" for some)
	$(BIN)/python -m pytest -q $(ARGS)

check: venv ## lint, formatting and types, of Python and Rust; changes no file
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	cd native && cargo fmt --check
	cd native && cargo clippy --locked --quiet --all-targets -- -D warnings

docs: venv ## write what is made from the code: the reference of job.yaml, the plans of the examples
	$(BIN)/python -m tests.make_docs

format: venv ## format Python and Rust
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format
	cd native && cargo fmt

clean: ## remove builds and caches; .venv and the local Hadoop stay
	rm -rf build dist ./*.egg-info native/target .mypy_cache .pytest_cache .ruff_cache
	find tfy tests examples bench -name __pycache__ -prune -exec rm -rf {} +

prerequisites:
	@.ci/prerequisites

$(STAMP): pyproject.toml $(NATIVE) | prerequisites
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): TensorFlow, Spark and the Rust build take minutes the first time"
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[runtime,dev]'
	# It asks for the package `tensorflow`, which would be unpacked over tensorflow-cpu.
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps 'tf_keras>=2.21,<2.22'
	touch $@
