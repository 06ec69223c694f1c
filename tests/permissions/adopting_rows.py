"""The table, adopting: what stands in a cloud is read by operators who may write, as it is asked with credentials."""

from __future__ import annotations

from apps.drivers.clouds.contract import FoundLoadBalancer
from apps.drivers.clouds.memory import memory_cloud
from apps.fleet.models import CloudAccount
from tests.permissions.rows import Row, codes

CLOUD, FOUND = "permission-table", "arn:old"
ACCOUNT, READ = {"name": "prod"}, codes(404, 404, "403 200 200")
REGION = {"region": "eu-central-1"}


def make_adopting_rows() -> None:
    """A cloud behind the operator's account, with a load balancer that has nothing below it."""
    CloudAccount.objects.filter(name="prod").update(endpoint_url=f"memory://{CLOUD}")
    memory_cloud(CLOUD).balancers = [FoundLoadBalancer("Application Load Balancer", "old", FOUND)]


ADOPTING: tuple[Row, ...] = (
    Row("api:cloud-accounts-load-balancers", "GET", READ, ACCOUNT, "cloudaccount", query=REGION),
    Row(
        "api:cloud-accounts-adopt", "POST", READ, ACCOUNT, "cloudaccount", REGION | {"id": FOUND, "name": "adopted"},
        only_asks=True,
    ),
)  # fmt: skip
