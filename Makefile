# One-word targets; `make` alone prints them.
.DEFAULT_GOAL := help
PY := .venv/bin/python

help: ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

PIP := .venv/bin/pip install -q --disable-pip-version-check --require-hashes

# `make test PYTHON=python3.13`: a .venv of another Python is made anew.
ifneq ($(PYTHON),)
ifneq ($(shell $(PYTHON) -V 2>&1),$(shell .venv/bin/python -V 2>&1))
.venv/.stamp: other-python
CLEAR := --clear
endif
endif
other-python: ;

.venv/.stamp: requirements.txt
	@deploy/packages.sh python3-venv
	@python=$$(MAKE_GOALS="$(MAKECMDGOALS)" deploy/choose_python.sh $(PYTHON)) && "$$python" -m venv $(CLEAR) .venv
	$(PIP) -r requirements.txt
	touch $@

.venv/.stamp-tests: .venv/.stamp requirements-aws.txt requirements-google.txt frontend/requirements.txt tests/requirements.txt
	$(PIP) -r requirements.txt -r requirements-aws.txt -r requirements-google.txt -r frontend/requirements.txt -r tests/requirements.txt
	touch $@

var/docs-venv/.stamp: .venv/.stamp docs/requirements.txt
	.venv/bin/python -m venv var/docs-venv
	var/docs-venv/bin/pip install -q --disable-pip-version-check --require-hashes -r docs/requirements.txt
	touch $@

var/documents/docs/index.html: var/docs-venv/.stamp mkdocs.yml $(shell find docs -name '*.md')
	NO_MKDOCS_2_WARNING=1 var/docs-venv/bin/mkdocs build -q

docs: var/documents/docs/index.html ## build the site of the documents, which the console serves below /docs/; broken links fail

var/deploy-venv/.stamp: .venv/.stamp deploy/requirements.txt
	.venv/bin/python -m venv var/deploy-venv
	var/deploy-venv/bin/pip install -q --disable-pip-version-check --require-hashes -r deploy/requirements.txt
	touch $@

var/clickhouse-venv/.stamp: .venv/.stamp tests/clickhouse/requirements.txt
	.venv/bin/python -m venv var/clickhouse-venv
	var/clickhouse-venv/bin/pip install -q --disable-pip-version-check --require-hashes -r tests/clickhouse/requirements.txt
	touch $@

lock: .venv/.stamp-tests ## compile every requirements*.in with hashes
	.venv/bin/pip install -q uv
	for each in requirements requirements-aws requirements-google frontend/requirements tests/requirements tests/clickhouse/requirements docs/requirements deploy/requirements; do \
		.venv/bin/uv pip compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 $$each.in -o $$each.txt || exit 1; done

frontend/static/vendor/.stamp: .venv/.stamp frontend/requirements.txt frontend/package.json frontend/package-lock.json frontend/install.py frontend/static/icons/lucide.txt
	$(PIP) -r frontend/requirements.txt
	$(PY) frontend/install.py
	touch $@

frontend: frontend/static/vendor/.stamp ## fetch the locked scripts, fonts and icons of the pages

agent: .venv/.stamp ## build var/spillway-agent.pyz, all that a node needs beside python3 and haproxy
	$(PY) deploy/pack_agent.py var/spillway-agent.pyz

terraform-provider: ## build var/terraform-provider with Go; docs/use/terraform.md says how Terraform takes it
	cd deploy/terraform && go build -trimpath -o ../../var/terraform-provider/ .

terraform-provider-release: .venv/.stamp ## build the zips of the provider for Linux and macOS, with SHA256SUMS, into var/terraform-provider-release
	$(PY) -m deploy.pack_terraform_provider var/terraform-provider-release

packages-debian: .venv/.stamp frontend/static/vendor/.stamp docs ## build the packages for Debian 12 and 13 into var/debian; ARGS="--release 13 --extras aws"
	@deploy/packages.sh debhelper
	@$(PY) -m deploy.debian $(ARGS)

image: .venv/.stamp frontend/static/vendor/.stamp docs ## build the container image of console and node; ARGS="--with docker --extras aws"
	@deploy/packages.sh binutils
	@$(PY) -m deploy.container $(ARGS)

ways-in: .venv/.stamp-tests var/deploy-venv/.stamp frontend/static/vendor/.stamp ## go every way in from nothing to a route; print the table of docs/operate/ways-in.md; ARGS=13 for one
	@deploy/packages.sh haproxy iproute2 debhelper mmdebstrap systemd-container
	@$(PY) -m tests.e2e.ways_matrix $(ARGS)

packages: ## install haproxy, redis and python3-venv where they are missing (apt, sudo unless root)
	@deploy/packages.sh haproxy redis-server python3-venv

up: packages .venv/.stamp frontend/static/vendor/.stamp docs ## the demo: two regions, real traffic; DETACH=1 for the background
	@$(PY) -m deploy.demo up $(if $(DETACH),--detach)

dev: .venv/.stamp ## beside a demo that runs: Django on port 8010 with its data, anew for each saved file; PORT=8010
	@$(PY) -m deploy.demo manage runserver $(or $(PORT),8010)

down: ## stop a demo that runs in the background
	@if [ -x $(PY) ]; then $(PY) -m deploy.demo down; else echo "Spillway does not run here."; fi

traffic: .venv/.stamp ## clients of the demo: make traffic REGION=us-central1 RATE=20
	@$(PY) -m deploy.demo traffic $(REGION) $(RATE)

kill: .venv/.stamp ## a dead HAProxy in the demo: make kill NODE=eu-1
	@$(PY) -m deploy.demo kill $(NODE)

seed: .venv/.stamp ## fill the database: make seed ROUTES=10000 ACCOUNTS=100
	@$(PY) -m deploy.demo manage seed --routes $(or $(ROUTES),10000) --accounts $(or $(ACCOUNTS),100)

TESTED_WITH := haproxy nginx libnginx-mod-stream etcd-server redis-server python3-venv postgresql chromium chromium-headless-shell chromium-driver iproute2 keepalived bird2 bind9 pdns-server pdns-backend-sqlite3 prometheus prometheus-alertmanager

quick: .venv/.stamp-tests frontend/static/vendor/.stamp ## while typing, 20 s: what needs neither a process nor a database
	@$(PY) -m tests.run_suite quick $(ARGS)

test: .venv/.stamp-tests frontend/static/vendor/.stamp ## for each change, 10 min: PostgreSQL, and SQLite where they differ, HAProxy, Redis, Chromium, Terraform
	@deploy/packages.sh $(TESTED_WITH)
	@$(PY) -m tests.run_suite test $(ARGS)

test-all: .venv/.stamp-tests var/deploy-venv/.stamp var/clickhouse-venv/.stamp frontend/static/vendor/.stamp ## before a tag: everything on both engines, kills, outages, full tables
	@deploy/packages.sh $(TESTED_WITH) debhelper mmdebstrap systemd-container
	@HAPROXY_BINARIES=$${HAPROXY_BINARIES:-$$($(PY) -m tests.haproxy_releases)} $(PY) -m tests.run_suite all $(ARGS)

test-haproxy: .venv/.stamp-tests frontend/static/vendor/.stamp ## HAProxy 2.8, 3.0 and 3.2: bundles, agents, overflow
	@deploy/packages.sh $(TESTED_WITH)
	@HAPROXY_BINARIES=$${HAPROXY_BINARIES:-$$($(PY) -m tests.haproxy_releases)} $(PY) -m tests.run_suite haproxy $(ARGS)

mutants: .venv/.stamp-tests frontend/static/vendor/.stamp ## plant one defect after the other and see that the tests find it; ARGS="--only NAME"
	@deploy/packages.sh $(TESTED_WITH)
	@$(PY) -m tests.mutants $(ARGS)

attacks: .venv/.stamp-tests frontend/static/vendor/.stamp ## attacks and faults of machines against what runs, a line each: held or not held
	@deploy/packages.sh $(TESTED_WITH)
	@$(PY) -m tests.run_suite attacks $(ARGS)

bench: .venv/.stamp-tests ## measure, print tables, write var/bench.json
	@deploy/packages.sh haproxy redis-server python3-venv wrk httperf
	$(PY) -m tests.bench

bench-overflow-split: .venv/.stamp-tests ## how exactly limits are kept; ARGS="--only 20 200 --setups 1" for some of it
	@deploy/packages.sh haproxy
	$(PY) -m tests.bench.overflow_split $(ARGS)

bench-overflow-replay: .venv/.stamp-tests ## Google's tutorial of overflow with httperf, their numbers beside ours
	@deploy/packages.sh haproxy httperf
	$(PY) -m tests.bench.overflow_replay $(ARGS)

bench-overflow-cost: .venv/.stamp-tests ## requests/s with limits against the same without, with wrk
	@deploy/packages.sh haproxy wrk
	$(PY) -m tests.bench.overflow_cost $(ARGS)

bench-policies: .venv/.stamp-tests ## CPU of a node per request with and without policies, with wrk
	@deploy/packages.sh haproxy wrk
	$(PY) -m tests.bench.policies_cost $(ARGS)

bench-logs: .venv/.stamp-tests ## CPU of a node and its agent with the request log, beside HAProxy's own log, with wrk
	@deploy/packages.sh haproxy wrk
	$(PY) -m tests.bench.request_log_cost $(ARGS)

bench-alerts: .venv/.stamp-tests frontend/static/vendor/.stamp ## seconds from a dead server to a mail and to Alertmanager, and to the word that it is well; ARGS="--rounds 10"
	@deploy/packages.sh haproxy redis-server prometheus-alertmanager
	$(PY) -m tests.bench.alert_delay $(ARGS)

bench-request-log-store: .venv/.stamp-tests ## a day of request lines: bytes a line, how soon questions are answered; ARGS="--lines 100000000", "--bucket" or "--clickhouse"
	$(PY) -m tests.bench.request_log_store $(ARGS)

bench-request-log-live: .venv/.stamp-tests ## requests of two nodes beside the lines stored, while parts die; ARGS="--seconds 120"
	@deploy/packages.sh haproxy redis-server wrk
	$(PY) -m tests.bench.request_log_live $(ARGS)

bench-limit-live: .venv/.stamp-tests ## a limit changed under load: how soon on every node, how many requests failed
	$(PY) -m tests.bench.limit_live $(ARGS)

bench-capacity: .venv/.stamp-tests ## servers of known capacity, found by the search; ARGS="--only tutorial --at-once 2"
	@deploy/packages.sh haproxy
	$(PY) -m tests.bench.capacity $(ARGS)

bench-capacity-compare: .venv/.stamp-tests ## balancer against direct, HAProxy against nginx, TLS against plain, A B A B
	@deploy/packages.sh haproxy nginx-light
	$(PY) -m tests.bench.capacity_compare $(ARGS)

bench-overflow-windows: .venv/.stamp-tests ## which windows hold a limit best; ARGS="--parts simulated --quick"
	@deploy/packages.sh haproxy
	$(PY) -m tests.bench.overflow_windows $(ARGS)

bench-stack-kills: .venv/.stamp-tests ## kill -9 of workers at every step of a stack at AWS: nothing twice, nothing forgotten
	.venv/bin/pytest -q -s tests/e2e/test_stack_killed.py

bench-synthesis: .venv/.stamp-tests ## seconds and memory of the synthesis of a stack with 1, 300 and 3 000 routes
	$(PY) -m tests.bench.synthesis

bench-schedules: .venv/.stamp-tests ## how many schedules, how late, and 200 x kill -9; ARGS="--quick" or "--only kills"
	@deploy/packages.sh redis-server postgresql
	$(PY) -m tests.bench.schedules $(ARGS)

bench-calendars: .venv/.stamp-tests ## the calendar against its rule, walked second by second, in every zone
	$(PY) -m tests.bench.calendars $(ARGS)

bench-pages: .venv/.stamp-tests frontend/static/vendor/.stamp ## server time of every page; ARGS="--routes 100000 --accounts 1000"
	@deploy/packages.sh redis-server
	$(PY) -m tests.bench.pages $(ARGS)

bench-reading: .venv/.stamp-tests ## processor time of a collector for one read of a node, part by part
	$(PY) -m tests.bench.reading_cost

bench-collecting: .venv/.stamp-tests ## processor time of a collector by nodes, with PostgreSQL and Redis; ARGS="--nodes 10 100 1000"
	$(PY) -m tests.bench.collecting $(ARGS)

bench-sample-lag: .venv/.stamp-tests ## how old what pages show of nodes is, with real collectors; ARGS="--nodes 1000 --collectors 4"
	$(PY) -m tests.bench.sample_lag $(ARGS)

bench-open-tabs: .venv/.stamp-tests frontend/static/vendor/.stamp ## how soon 200 open tabs show a sample at 1 000 nodes and 100 000 routes; ARGS="--tabs 50 200"
	$(PY) -m tests.bench.open_tabs $(ARGS)

bench-reading-routes: .venv/.stamp-tests ## what the counters of many routes on one node cost agent and collector; ARGS="--routes 1000000"
	$(PY) -m tests.bench.reading_routes $(ARGS)

bench-route-growth: .venv/.stamp-tests ## seconds and memory to compile many routes of which one in a hundred changes; ARGS="--routes 1000000"
	$(PY) -m tests.bench.route_growth $(ARGS)

bench-found-servers: .venv/.stamp-tests ## from a new DNS record (or pod) to the first response of the new server
	@deploy/packages.sh haproxy redis-server
	$(PY) -m tests.bench.found_servers $(ARGS)

bench-import-hosts: .venv/.stamp-tests ## 10 000 hosts of four kinds of configuration, text to report; ARGS="--store --hosts 1000" plans and stores
	$(PY) -m tests.bench.import_hosts $(ARGS)

openapi: .venv/.stamp ## write apps/api/openapi.json, deploy/terraform/kinds.json and the provider's pages anew from the URLs and shapes
	$(PY) manage.py openapi

bench-api-fuzz: .venv/.stamp-tests ## schemathesis over the whole API, minutes; ARGS="--examples 200 --only routes"
	@deploy/packages.sh redis-server
	$(PY) -m tests.conformance.api_fuzz $(ARGS)

check: .venv/.stamp-tests ## ruff, mypy --strict, import rules
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

fmt: .venv/.stamp-tests ## put the code in order
	.venv/bin/ruff check -q --fix .
	.venv/bin/ruff format .

clean: down ## remove what was made: the demo's data, caches, fetched assets; the venv stays
	rm -rf var frontend/static/vendor frontend/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help terraform-provider terraform-provider-release other-python image packages-debian ways-in dev docs lock openapi bench-logs bench-policies bench-stack-kills bench-synthesis bench-schedules bench-calendars bench-pages bench-reading bench-collecting bench-sample-lag bench-open-tabs bench-reading-routes bench-route-growth bench-found-servers bench-import-hosts bench-api-fuzz check frontend packages up down traffic kill seed quick test test-all test-haproxy attacks mutants bench fmt clean agent
