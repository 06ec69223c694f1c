"""The table of canaries, and the row that it is asked about."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.canaries.models import Canary
from apps.canaries.plan import CanaryPlan, CanaryStep
from apps.definitions.models import Route
from apps.definitions.shapes.base.writing import write
from tests.permissions.rows import Row, codes

READ = codes(404, 200, 200)
FORM = codes("403 404 404", "403 200 200", "403 200 200")
FAULTY = codes("403 404 404", "403 422 422", "403 422 422")
DECIDED = codes("403 404 404", "403 302 302", "403 302 302")
ONE, ROUTE = {"pk": "$canary"}, {"account": "acme", "name": "shop"}
ACTS = ("hold", "resume", "promote", "abort")

CANARIES: tuple[Row, ...] = (
    Row("api:routes-canaries", "POST", codes(404, "403 422 422", "403 422 422"), ROUTE, "route", body={}),
    Row("api:canaries-list", "GET", codes(200, 200, 200), holds="all"),
    Row("api:canaries-detail", "GET", READ, ONE, "canary"),
    *(Row(f"api:canaries-{act}", "POST", codes(404, "403 202 202", "403 202 202"), ONE, "canary") for act in ACTS),
    Row("web:route-canary", "GET", FORM, {"pk": "$route"}, "route"),
    Row("web:route-canary", "POST", FAULTY, {"pk": "$route"}, "route", form={"/steps/0/percent": "0"}),
    Row("web:canary", "GET", READ, ONE, "canary"),
    Row("web:canary", "POST", READ, ONE),
    *(Row(f"web:canary-{act}", "POST", DECIDED, ONE, "canary", form={}) for act in ACTS),
)


def make_canary_rows(own: Account) -> None:
    """A canary of the own account that holds."""
    route = Route.objects.get(account=own, name="shop")
    Canary.objects.create(
        account=own,
        route=route,
        label=f"{own.name}/{route.name}",
        plan=write(CanaryPlan, CanaryPlan("shop-next", (CanaryStep(10, 60),))),
        before={"shop": 100, "shop-next": 0},
        weights={"shop": 90, "shop-next": 10},
        state=Canary.State.HELD,
        actor="x",
    )
