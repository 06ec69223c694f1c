# One-word targets; `make` alone prints them.
.DEFAULT_GOAL := help
PY := .venv/bin/python

help: ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.venv/.stamp: requirements.txt tests/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements.txt -r tests/requirements.txt
	touch $@

lock: .venv/.stamp ## compile requirements.in and tests/requirements.in with hashes
	.venv/bin/pip install -q uv
	.venv/bin/uv pip compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 requirements.in -o requirements.txt
	.venv/bin/uv pip compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 tests/requirements.in -o tests/requirements.txt

check: .venv/.stamp ## ruff, mypy --strict, import rules, architecture tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/pytest -q tests/architecture

.PHONY: help lock check
