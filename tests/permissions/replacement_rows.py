"""The table, servers that register themselves and replacements of servers; and the row that these are asked about."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.definitions.shapes.base.writing import write
from apps.replacements.models import Replacement
from apps.replacements.plan import ReplacementPlan
from tests.permissions.rows import Row, codes

DECIDED = codes("403 404 404", "403 302 302", "403 302 302")
FORM, FAULTY = (codes("403 404 404", f"403 {code} {code}", f"403 {code} {code}") for code in (200, 422))
SPARE = {"pk": "$spare"}
READ = codes(404, 200, 200)
ONE, POOL = {"pk": "$replacement"}, {"account": "acme", "name": "shop"}

REPLACEMENTS: tuple[Row, ...] = (
    Row("api:pools-replacements", "POST", codes(404, "403 202 202", "403 202 202"), POOL, "pool", body={}),
    *(
        Row(
            "api:pools-own-server",
            method,
            codes("403 404 404", "403 409 409", "403 409 409"),
            POOL | {"region": "us-central1", "server": "shop-9"},
            "pool",
            body={"address": "192.0.2.9", "port": 80},
        )
        for method in ("PUT", "DELETE")
    ),
    Row("api:replacements-list", "GET", codes(200, 200, 200), holds="all"),
    Row("api:replacements-detail", "GET", READ, ONE, "replacement"),
    Row(
        "api:replacements-continue",
        "POST",
        codes(404, "403 409 409", "403 409 409"),
        ONE,
        "replacement",
        body={"batch": 1},
    ),
    *(
        Row(f"api:replacements-{act}", "POST", codes(404, "403 202 202", "403 202 202"), ONE, "replacement")
        for act in ("stop", "resume", "reverse", "end")
    ),
    Row("web:pool-replacements", "GET", FORM, SPARE, "spare"),
    Row("web:pool-replacements", "POST", FAULTY, SPARE, "spare", form={"/batch_size": "0"}),
    Row("web:replacement", "GET", READ, ONE, "replacement"),
    Row("web:replacement", "POST", READ, ONE),
    *(
        Row(f"web:replacement-{act}", "POST", DECIDED, ONE, "replacement", form={})
        for act in ("stop", "resume", "reverse", "end", "continue")
    ),
)


def make_replacement_rows(own: Account) -> None:
    """A replacement of the own account that has stopped."""
    Replacement.objects.create(
        account=own,
        pool=Pool.objects.get(account=own, name="spare"),
        label=f"{own.name}/spare",
        plan=write(ReplacementPlan, ReplacementPlan()),
        state=Replacement.State.STOPPED,
        step_since=now(),
        actor="x",
    )
