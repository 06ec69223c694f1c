"""The table, runs of capacity tests and blackouts; and the rows of the environment that these are asked about."""

from __future__ import annotations

from datetime import timedelta

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.capacity.models import Blackout, Comparison
from apps.core.clock import now
from apps.definitions.services import save_object
from tests.interfaces.capacity_env import make_run
from tests.permissions.rows import Row, codes

LIST = codes(200, 200, 200)
READ = codes(404, 200, 200)
OF_TEST, OF_RUN, OF_BLACKOUT = {"pk": "$capacitytest"}, {"pk": "$run"}, {"pk": "$blackout"}
READ_ONLY = {"read only": 202}
COMPARED = {"first_id": "$capacitytest", "second_id": "$capacitytest"}
GOING = {"pk": "$going"}
WINDOW = {"starts_at": "2040-01-01T00:00:00Z", "ends_at": "2040-01-02T00:00:00Z", "reason": "x"}

CAPACITY: tuple[Row, ...] = (
    Row("api:capacity-tests-run", "POST", codes(404, "403 202 202", "403 202 202"), OF_TEST, "capacitytest"),
    Row("api:capacity-tests-checks", "GET", READ, OF_TEST, "capacitytest"),
    Row("api:capacity-runs-list", "GET", LIST, holds="all"),
    *(
        Row(f"api:capacity-runs-{name}", "GET", READ, OF_RUN, "run")
        for name in ("detail", "steps", "seconds")
    ),
    # Everybody who sees a run may end it: viewers, and tokens that only read.
    Row("api:capacity-runs-stop", "POST", codes(404, 202, 202), GOING, "going", by_viewers=True, odd=READ_ONLY),
    Row("api:capacity-runs-approve", "POST", codes(404, 403, "403 409 409"), GOING, "going"),
    Row("api:capacity-runs-set-limit", "POST", codes(404, "403 409 409", "403 409 409"), GOING, "going"),
    Row("api:capacity-comparisons-list", "GET", LIST, holds="all"),
    Row("api:capacity-comparisons-list", "POST", codes("403 404 404", "403 422 422", "403 422 422"), body=COMPARED),
    Row("api:capacity-comparisons-detail", "GET", READ, {"pk": "$comparison"}, "comparison"),
    Row("api:sizing", "GET", READ, holds="pool", query={"pool": "acme/shop", "rate": "10"}),
    Row("api:blackouts-list", "GET", LIST),
    Row("api:blackouts-list", "POST", codes(403, 403, "403 201 201"), body=WINDOW),
    Row("api:blackouts-detail", "GET", LIST, OF_BLACKOUT),
    Row("api:blackouts-detail", "DELETE", codes(403, 403, "403 204 204"), OF_BLACKOUT),
)  # fmt: skip


def make_capacity_rows(own: Account) -> None:
    """A test of the own account, a run of it that is over and one that goes on, and a blackout far away."""
    target = {"pool": "shop", "region": "us-central1", "hostname": "shop.acme.example"}
    test = save_object(actor=Actor("x", own, "admin"), kind="CapacityTest", name="measure", spec={"target": target})
    make_run(test, steps=2)
    make_run(test, steps=1, state="running", lease_until=now() + timedelta(days=1))
    nothing = {"message": "No difference can be shown.", "differences": []}
    Comparison.objects.create(account=own, first=test, second=test, actor="x", result=nothing)
    Blackout.objects.create(starts_at="2039-01-01T00:00:00Z", ends_at="2039-01-02T00:00:00Z", reason="x", set_by="x")
