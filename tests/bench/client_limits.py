"""A limit per client over four nodes that get 6:3:1:1 of twice its traffic: how much of it is admitted?

python -m tests.bench.client_limits
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.compiler.model.listener_options import ConnectionLimit
from apps.compiler.model.policy import ClientLimit, Rules
from tests.e2e.client_load import load
from tests.e2e.overflow_env import RegionSetup, regions

LIMIT = 100
CLIENT = "127.0.0.2"  # another address than the nodes'
PARTS = (6, 3, 1, 1)
OFFERED = 2.2
# The first two windows of ten seconds admit what they have room for after a quiet time.
WARM_UP_S = 22.0
MEASURED_S = 20.0


@dataclass(frozen=True, slots=True)
class Result:
    """Admitted and refused per second, and how far the first is from the limit; bytes of one answer."""

    admitted: float
    refused: float
    error: float
    answer_bytes: int = 0


def measure(
    rules: Rules,
    *,
    limit: int = LIMIT,
    without: str = "",
    headers: dict[str, str] | None = None,
    body_bytes: int = 0,
) -> Result:
    """Four real nodes with peers; `without` takes lines away from their configuration."""
    setup = RegionSetup(nodes=4, body_bytes=body_bytes)
    with regions(setup, real_windows=True, without=without, rules=rules) as env:
        answer = env.nodes[0][0].ask().headers
        ports = [node.port for node in env.nodes[0]]
        seconds = WARM_UP_S + MEASURED_S
        found = load(ports, PARTS, OFFERED * limit, seconds, headers=headers, skip_s=WARM_UP_S)
    admitted = found[200] / MEASURED_S
    size = body_bytes + sum(len(f"{name}: {value}\r\n") for name, value in answer.items())
    return Result(admitted, found[429] / MEASURED_S, admitted / limit - 1, size)


def measure_bytes(body_bytes: int, *, limit: int = LIMIT, without: str = "") -> Result:
    """The same with a limit of bytes that so many answers have together, leaving out their headers."""
    rules = Rules(client_limit=ClientLimit(bytes_out=limit * body_bytes))
    found = measure(rules, limit=limit, without=without, body_bytes=body_bytes)
    return replace(found, error=found.admitted * found.answer_bytes / (limit * body_bytes) - 1)


def measure_connections(*, limit: int = LIMIT, without: str = "") -> Result:
    """New connections from one address, each with one request."""
    said = ConnectionLimit(connections=limit)
    with regions(RegionSetup(nodes=4), real_windows=True, without=without, client_limit=said) as env:
        ports = [node.port for node in env.nodes[0]]
        seconds = WARM_UP_S + MEASURED_S
        found = load(ports, PARTS, OFFERED * limit, seconds, skip_s=WARM_UP_S, source=CLIENT)
    admitted = found[200] / MEASURED_S
    return Result(admitted, found[0] / MEASURED_S, admitted / limit - 1)


def main() -> None:
    """The table."""
    print("| limit | key | admitted/s | refused/s | error |\n| --- | --- | --- | --- | --- |")
    for limit in (20, 100, 200):
        for key in ("address", "header"):
            said = ClientLimit(requests=limit, key=key, key_name="X-Key")
            found = measure(Rules(client_limit=said), limit=limit, headers={"X-Key": "one"})
            print(f"| {limit} | {key} | {found.admitted:.2f} | {found.refused:.2f} | {found.error:+.2%} |", flush=True)
    for limit, size in ((100, 1_000), (100, 10_000), (20, 15_000)):
        found = measure_bytes(size, limit=limit)
        print(
            f"| {limit * size} bytes | address | {found.admitted:.2f} | {found.refused:.2f} | {found.error:+.2%} |",
            flush=True,
        )
    for limit in (20, 100, 200):
        found = measure_connections(limit=limit)
        print(
            f"| {limit} connections | address | {found.admitted:.2f} | {found.refused:.2f} | {found.error:+.2%} |",
            flush=True,
        )
    alone = measure(Rules(client_limit=ClientLimit(requests=LIMIT)), without=",add(txn.counted)")
    print(
        f"| {LIMIT} | address, each node for itself | {alone.admitted:.2f} | {alone.refused:.2f} | {alone.error:+.2%} |"
    )


if __name__ == "__main__":
    main()
