"""The demo's traffic command: what it says about rates and limits, and that refusals reach the person."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.demo.client import Region, Traffic
from deploy.demo.config import DemoConfig
from deploy.demo.http1 import listen
from deploy.demo.topology import DemoTopology
from deploy.demo.traffic import limits_of, sentences, set_traffic, traffic_of


@pytest.fixture
def config(tmp_path: Path) -> Iterator[DemoConfig]:
    """A configuration whose clients' control really answers, on a port of the kernel's choice."""
    ports: list[int] = []
    started, ending = threading.Event(), threading.Event()

    async def serve() -> None:
        traffic = Traffic({"us-central1": Region("us-central1", [], 3.0)}, most=60)
        async with await listen(traffic.answer, 0) as server:
            ports.append(server.sockets[0].getsockname()[1])
            started.set()
            await asyncio.to_thread(ending.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(10)
    made = DemoConfig(var=tmp_path / "var", client_port=ports[0])
    yield made
    ending.set()
    thread.join(10)
    shutil.rmtree(made.run, ignore_errors=True)


def test_the_rate_of_one_region_is_set_and_read_back(config: DemoConfig) -> None:
    assert traffic_of(config) == {"us-central1": 3.0}
    assert set_traffic(config, "us-central1", 20) == {"us-central1": 20}
    assert traffic_of(config) == {"us-central1": 20}


def test_a_region_that_is_not_there_and_a_rate_that_is_too_high_are_refused_in_words(config: DemoConfig) -> None:
    with pytest.raises(ValueError, match="There is no region 'mars'"):
        set_traffic(config, "mars", 5)
    with pytest.raises(ValueError, match="from 0 to 60"):
        set_traffic(config, "us-central1", 61)


def test_the_limit_of_each_pool_is_said_and_no_sum_of_them(config: DemoConfig) -> None:
    topology = DemoTopology(config)
    limits = limits_of(topology)["us-central1"]
    assert len(limits) > 1
    (line,) = sentences(topology, {"us-central1": 20})
    assert all(f"{pool} {limit:g}/s" in line for pool, limit in limits.items())
    total = f"{sum(limits.values()):g}"
    assert total not in re.findall(r"[\d.]+", line)


def test_nothing_is_compared_with_what_all_pools_get_together(config: DemoConfig) -> None:
    few, many = (next(sentences(DemoTopology(config), {"us-central1": rate})) for rate in (1, 60))
    assert few.replace("send 1 ", "send 60 ") == many
