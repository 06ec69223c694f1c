"""The Terraform provider end to end: the real Terraform makes, sees, imports and deletes what the console stores."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_django.live_server_helper import LiveServer

from apps.accounts.bootstrap import replace_token
from apps.accounts.models import Account
from apps.accounts.tokens import create_token
from apps.audit.models import Entry
from apps.definitions.models import AlertChannel, Pool, Route, Schedule, Zone
from apps.definitions.selectors import describe
from apps.definitions.services import delete_object, save_object
from apps.fleet.models import Fleet
from tests.conftest import TUTORIAL, actor_of
from tests.e2e.pages import CLOUDS
from tests.e2e.terraform_provider import OF_KIND, Terraform, address, built

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "use" / "terraform.md"
SERVER = {"name": "s1", "address": "10.0.0.1", "port": 80}
REGION: dict[str, Any] = {"kind": "Region", "name": "eu", "spec": {"title": "EU"}}
POOL: dict[str, Any] = {"kind": "Pool", "name": "shop", "spec": {"backends": [{"region": "eu", "servers": [SERVER]}]}}


@pytest.fixture(scope="module")
def provider() -> Path:
    """Built from the tree."""
    return built()


@pytest.fixture
def terraform(provider: Path, live_server: LiveServer, live_redis: str, tmp_path: Path) -> Terraform:
    """An empty folder of the operator."""
    for name in ("acme", "globex"):
        actor_of(name, Account.Kind.CUSTOMER)
    operator = actor_of("operator", Account.Kind.OPERATOR).account
    return Terraform(tmp_path, live_server.url, replace_token(account=operator, name="terraform"))


def documents() -> list[dict[str, Any]]:
    """The tutorial and clouds, kind by kind."""
    found = yaml.safe_load(TUTORIAL.read_text())["objects"] + copy.deepcopy(CLOUDS)
    made = [each for each in found if each["kind"] != "Account"]
    for each in made:
        each["spec"].pop("protected", None)  # else nothing deletes it
    return sorted(made, key=lambda each: list(OF_KIND).index(each["kind"]))


def identity(document: dict[str, Any]) -> str:
    """What `terraform import` calls an object."""
    owned = OF_KIND[document["kind"]].get("owned")
    return f"{document.get('account', 'operator')}/{document['name']}" if owned else document["name"]


def versions_of(*models: Any) -> list[list[tuple[int, int]]]:
    """How often each object changed."""
    return [list(model.objects.values_list("pk", "version")) for model in models]


def changed(name: str, **fields: Any) -> None:
    """Somebody changes a pool in the console."""
    row = Pool.objects.get(name=name)
    actor = actor_of("operator", Account.Kind.OPERATOR)
    spec = describe(row) | fields
    save_object(actor=actor, kind="Pool", name=name, account=row.account.name, spec=spec, expected_version=row.version)


def test_every_kind_is_made_imported_without_being_changed_and_deleted(terraform: Terraform) -> None:
    wanted = documents()
    assert {each["kind"] for each in wanted} >= {"Route", "Policy", "Schedule", "Stack", "StaticIP", "Zone"}
    terraform.write(*wanted)
    terraform.apply()
    assert "No changes" in terraform.plan()
    versions = versions_of(Fleet, Pool, Route, Schedule, Zone)
    (terraform.folder / "terraform.tfstate").unlink()
    for each in wanted:
        terraform.run("import", address(each), identity(each))
    terraform.apply()  # takes over what only the configuration says: defaults, the order of lists, secrets
    assert "No changes" in terraform.plan()
    assert versions == versions_of(Fleet, Pool, Route, Schedule, Zone)
    terraform.run("destroy", "-auto-approve")
    assert not Pool.objects.exists()
    assert not Fleet.objects.exists()


def test_what_somebody_changed_is_shown_and_taken_back(terraform: Terraform) -> None:
    terraform.write(REGION, POOL)
    terraform.apply()
    changed("shop", balance="random")
    shown = terraform.plan(changes=True)
    assert '- balance  = "random" -> null' in shown
    assert shown.count("->") == 2  # and its version
    terraform.apply()
    assert Pool.objects.get().balance == "leastconn"
    assert "No changes" in terraform.plan()


def test_a_plan_that_somebody_overtook_changes_nothing(terraform: Terraform) -> None:
    terraform.write(REGION, POOL)
    terraform.apply()
    terraform.write(REGION, POOL | {"spec": POOL["spec"] | {"balance": "source"}})
    terraform.run("plan", "-out=planned")
    changed("shop", balance="random")
    assert "Somebody changed it" in terraform.run("apply", "planned", status=1)
    assert Pool.objects.get().balance == "random"


def test_what_was_deleted_in_the_console_is_made_again(terraform: Terraform) -> None:
    terraform.write(REGION, POOL)
    terraform.apply()
    actor = actor_of("operator", Account.Kind.OPERATOR)
    delete_object(actor=actor, kind="Pool", name="shop", account="operator")
    assert "1 to add" in terraform.plan(changes=True)
    terraform.apply()
    assert Pool.objects.get().name == "shop"


def test_errors_stand_at_the_field_and_nothing_is_stored(terraform: Terraform) -> None:
    bad = {"name": "s1", "address": "not an address", "port": 70000}
    terraform.write(REGION, POOL | {"spec": {"backends": [{"region": "eu", "servers": [bad]}]}})
    shown = terraform.apply(status=1)
    assert "(/spec/backends/0/servers/0/address)" in shown
    assert "(/spec/backends/0/servers/0/port)" in shown
    assert "main.tf.json line" in shown
    assert not Pool.objects.exists()
    terraform.write(REGION, POOL | {"spec": {"balance": "fastest"}})
    assert "Use one of roundrobin" in terraform.run("validate", status=1)


def test_what_exists_is_not_taken_over_unasked(terraform: Terraform) -> None:
    terraform.write(REGION, POOL)
    terraform.apply()
    (terraform.folder / "terraform.tfstate").unlink()
    shown = terraform.apply(status=1)
    assert "eu exists already" in shown
    assert "terraform import" in shown


def test_a_secret_is_sent_kept_by_terraform_alone_and_sent_again_when_it_changes(terraform: Terraform) -> None:
    channel: dict[str, Any] = next(each for each in CLOUDS if each["kind"] == "AlertChannel")
    terraform.write(channel)
    shown = terraform.apply()
    assert channel["spec"]["secret"] not in shown
    assert "No changes" in terraform.plan()
    before = bytes(AlertChannel.objects.get().sealed_secret or b"")
    terraform.write(channel | {"spec": channel["spec"] | {"secret": "whsec_" + "REVG" * 10}})
    terraform.apply()
    assert bytes(AlertChannel.objects.get().sealed_secret or b"") != before
    assert "No changes" in terraform.plan()


def test_the_manager_of_the_provider_manages_what_it_makes(terraform: Terraform) -> None:
    terraform.write(REGION, POOL, manager="shop", reason="ticket 7")
    terraform.apply()
    assert Pool.objects.get().manager == "shop"
    assert set(Entry.objects.filter(object_kind="Pool").values_list("reason", flat=True)) == {"ticket 7"}


def test_a_customer_reaches_its_own_objects_alone(terraform: Terraform) -> None:
    terraform.write(REGION, POOL)
    terraform.apply()
    theirs = replace_token(account=Account.objects.get(name="acme"), name="terraform")
    customer = Terraform(terraform.folder / "acme", terraform.url, theirs)
    customer.folder.mkdir()
    customer.write(POOL)
    assert "your objects belong to acme" in customer.apply(status=1)
    customer.text('data "spillway_pool" "shop" {\n  account = "operator"\n  name = "shop"\n}\n')
    assert "404" in customer.apply(status=1)
    assert Pool.objects.get().version == 1


def test_the_page_about_it_is_true(terraform: Terraform) -> None:
    """The configuration of docs/use/terraform.md."""
    blocks = DOCS.read_text().split("```hcl\n")[1:]
    terraform.text(blocks[0].partition("```")[0])
    terraform.apply()
    assert "No changes" in terraform.plan()
    assert Route.objects.get().shares[0].pool.name == "shop"


def route(**fields: Any) -> dict[str, Any]:
    """A route, with a load balancer that somebody has to make."""
    spec = {"load_balancer": "front", "hostname": "shop.example", "action": {"pools": [{"pool": "shop"}]}} | fields
    return {"kind": "Route", "name": "shop", "spec": spec}


FLEET: dict[str, Any] = {"kind": "Fleet", "name": "eu", "spec": {"region": "eu"}}
LISTENERS = [{"name": "web", "protocol": "http", "port": 80}]
FRONT: dict[str, Any] = {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["eu"], "listeners": LISTENERS}}


def test_a_plan_says_at_the_line_what_an_apply_would_refuse(terraform: Terraform) -> None:
    """Bad values, unknown names and full quotas; what the same plan makes is not missing."""
    terraform.write(REGION, FLEET, FRONT, POOL, route(path="no slash"))
    shown = terraform.run("plan", status=1)
    assert "(/spec/path)" in shown
    assert "main.tf.json line" in shown
    terraform.write(REGION, FLEET, FRONT, POOL, route(action={"pools": [{"pool": "shpo"}]}))
    shown = terraform.run("plan", status=1)
    assert "(/spec/action/pools/0/pool)" in shown
    assert "refer to it by its address" in " ".join(shown.split())
    terraform.write(REGION, FLEET, FRONT, POOL, route())
    assert "5 to add" in terraform.plan(changes=True)
    full = POOL | {"account": "acme"}
    Account.objects.filter(name="acme").update(quotas={"pools": 0})
    terraform.write(REGION, full)
    assert "quota" in terraform.run("plan", status=1)
    terraform.write(REGION, full, check_plans=False)
    assert "2 to add" in terraform.plan(changes=True)


def test_a_plan_asks_nothing_of_what_is_not_known_yet(terraform: Terraform) -> None:
    """A server's address that another resource will have, and a route to that pool."""
    made = {"region": "eu", "servers": [SERVER | {"address": "${terraform_data.server.output}"}]}
    terraform.write(REGION, FLEET, FRONT, POOL | {"spec": {"backends": [made]}}, route())
    terraform.text('resource "terraform_data" "server" {\n  input = "10.0.0.1"\n}\n', "other.tf")
    assert "6 to add" in terraform.plan(changes=True)
    terraform.apply()
    assert "No changes" in terraform.plan()


def test_an_object_that_exists_is_named_by_the_plan(terraform: Terraform) -> None:
    terraform.write(REGION)
    terraform.apply()
    (terraform.folder / "terraform.tfstate").unlink()
    assert "eu exists already" in terraform.run("plan", status=1)


def test_what_gets_another_name_is_replaced_and_the_plan_says_so(terraform: Terraform) -> None:
    terraform.write(REGION, FLEET, FRONT, POOL, route())
    terraform.apply()
    configuration = json.loads((terraform.folder / "main.tf.json").read_text())
    configuration["resource"]["spillway_route"]["operator-shop"]["name"] = "store"
    terraform.text(json.dumps(configuration), "main.tf.json")
    shown = terraform.plan(changes=True)
    assert "forces replacement" in shown
    assert "Warning" in shown  # the former route has the same path until it is deleted
    terraform.apply()
    assert Route.objects.get().name == "store"
    assert "No changes" in terraform.plan()
    terraform.run("apply", "-auto-approve", "-replace=spillway_route.operator-shop")
    assert Route.objects.get().name == "store"


def test_a_token_that_only_reads_plans_with_a_warning(terraform: Terraform) -> None:
    viewer = create_token(account=Account.objects.get(name="operator"), name="viewer", role="viewer")
    reading = Terraform(terraform.folder, terraform.url, viewer)
    reading.write(REGION)
    shown = reading.plan(changes=True)
    assert "This token may not apply the plan" in shown
    assert "1 to add" in shown


def test_a_console_that_does_not_answer_is_a_warning_of_the_plan_and_an_error_of_the_apply(
    terraform: Terraform,
) -> None:
    nowhere = Terraform(terraform.folder, "http://127.0.0.1:9", terraform.token)
    nowhere.write(REGION)
    assert "The plan was not checked" in nowhere.plan(changes=True)
    assert "Spillway cannot be asked" in nowhere.apply(status=1)
