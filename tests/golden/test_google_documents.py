"""Golden documents of stacks at Google: each environment goes in, `google/<environment>.json` comes out.

`UPDATE_GOLDEN=1 pytest tests/golden` writes what the compiler says now; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.model.shared import Protocol
from apps.compiler.model.stack import StackSnapshot
from apps.compiler.targets.terraform.google.render import render
from tests.pure.compiler_fixtures import front, listener, route
from tests.pure.google_fixtures import cloud_pool, everything, stack

FOLDER = Path(__file__).parent / "google"
TCP = front(listeners=(listener(1, protocol=Protocol.TCP, port=5432, default_pool_id="pool-1"),))
CASES = {
    "empty": stack(pools=()),
    "minimal_http": stack(front(route(1))),
    "minimal_tcp": stack(TCP, pools=(cloud_pool(1, protocol=Protocol.TCP),)),
    "everything": everything(),
    "another_endpoint": stack(front(route(1)), project="", endpoint_url="http://127.0.0.1:4443/"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_stack_becomes_exactly_this_document(name: str) -> None:
    text = json.dumps(render(CASES[name]).as_json(), indent=1) + "\n"
    path = FOLDER / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def _backwards(snapshot: StackSnapshot) -> StackSnapshot:
    return replace(
        snapshot,
        load_balancers=snapshot.load_balancers[::-1],
        pools=snapshot.pools[::-1],
        addresses=snapshot.addresses[::-1],
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    assert render(_backwards(CASES[name])).digest == render(CASES[name]).digest
