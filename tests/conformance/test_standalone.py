"""A load balancer leaves as a plain haproxy.cfg: HAProxy takes it, and nothing of it needs an agent."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.codec import snapshot_from_json
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.portability.standalone import NotAlone, alone, standalone
from apps.importing.replay.contract import Answer, Request
from apps.importing.replay.programs import run_haproxy
from apps.importing.replay.stubs import stub_servers
from tests.conformance.exported import answer, asked, decided_by, names_of_pools, on_stubs
from tests.e2e.rendered_proxy import running
from tests.golden.test_bundles import CASES
from tests.ports import spare_port

pytestmark = pytest.mark.processes
REQUEST_ID = re.compile("'[0-9a-f]{32}', now '[0-9a-f]{32}'")


def exported(case: Path, folder: Path) -> int:
    """How many load balancers of a golden document HAProxy takes by themselves, without a warning."""
    snapshot = snapshot_from_json(json.loads((case / "snapshot.json").read_text()))
    for each in snapshot.load_balancers:
        to = folder / each.id
        for path, content in standalone(snapshot, each.id).output.items():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(content)
        text = (to / "haproxy.cfg").read_text()
        assert "SPILLWAY" not in text
        command = ["haproxy", "-c", "-f", "haproxy.cfg"]
        checked = subprocess.run(command, cwd=to, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
    return len(snapshot.load_balancers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_haproxy_takes_every_load_balancer_of_the_golden_documents_by_itself(case: Path, tmp_path: Path) -> None:
    assert exported(case, tmp_path) >= 0


def test_one_that_the_fleet_does_not_run_is_refused() -> None:
    snapshot = snapshot_from_json(json.loads((CASES[0] / "snapshot.json").read_text()))
    with pytest.raises(NotAlone):
        standalone(snapshot, "lb-999")


@contextmanager
def by_itself(files: Mapping[str, bytes], folder: Path) -> Iterator[dict[int, int]]:
    """HAProxy with an export and no agent; ports of this machine by those that were meant."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    text = (folder / "haproxy.cfg").read_text().replace("/run/haproxy", str(folder))
    ports = {int(found): spare_port() for found in re.findall(r"(?m)^    bind \S*:(\d+)\b", text)}
    for meant, here in ports.items():
        text = re.sub(rf"(?m)^(    bind )\S*:{meant}\b", rf"\g<1>127.0.0.1:{here}", text)
    (folder / "haproxy.cfg").write_text(text)
    with run_haproxy(folder / "haproxy.cfg", folder):
        yield ports


def addresses(front: LoadBalancer) -> int:
    """How many addresses its listeners are on: here they share one, so ports must be there once."""
    return len({each.address for each in front.listeners})


@pytest.mark.exhaustive
@pytest.mark.slow(reason="two HAProxies are asked hundreds of times")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_by_itself_it_answers_as_the_nodes_do(case: Path, tmp_path: Path) -> None:
    golden = snapshot_from_json(json.loads((case / "snapshot.json").read_text()))
    with stub_servers(names_of_pools(golden)) as stubs:
        for each in golden.load_balancers:
            before = alone(on_stubs(golden, stubs), each.id)
            front = examine(before).accepted.load_balancers[0]
            if addresses(front) > 1:
                continue
            bundle, files = compile_snapshot(before).output, standalone(on_stubs(golden, stubs), each.id).output
            nodes, own = tmp_path / f"{each.id}-nodes", tmp_path / each.id
            nodes.mkdir()
            with running(bundle, nodes) as proxy, by_itself(files, own) as now:
                at = {bind.port: proxy.ports[bind.listener_id] for bind in bundle.binds}
                different = [
                    (str(request), found) for request in asked(front)
                    if (found := differences(answer(front, request, at), answer(front, request, now)))
                    and not is_drawn(front, request)
                ]  # fmt: skip
            assert different == []


def differences(before: Answer, after: Answer) -> list[str]:
    """Without the id that each request gets anew."""
    return [each for each in before.differences(after) if not REQUEST_ID.search(each)]


def is_drawn(front: LoadBalancer, request: Request) -> bool:
    """Whether chance decides which pool gets it."""
    winner = decided_by(front, request)
    return winner is not None and len(winner.pools) > 1


@pytest.mark.exhaustive
def test_an_entry_of_a_map_that_is_lost_is_noticed(tmp_path: Path) -> None:
    """The control."""
    case = next(each for each in CASES if each.name == "minimal_http")
    golden = snapshot_from_json(json.loads((case / "snapshot.json").read_text()))
    with stub_servers(names_of_pools(golden)) as stubs:
        front = golden.load_balancers[0]
        files = standalone(on_stubs(golden, stubs), front.id).output
        emptied = {path: b"" if path.endswith("-prefix.map") else content for path, content in files.items()}
        with by_itself(files, tmp_path / "whole") as whole, by_itself(emptied, tmp_path / "less") as less:
            request = asked(front)[-1]
            assert answer(front, request, whole).status == 200
            assert answer(front, request, less).status == 404
