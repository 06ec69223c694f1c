"""What a node's machine lacks is no verdict on the bundle: it runs on, says so, and takes the same one later."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.agent.check.sandbox import failure_from
from apps.agent.errors import Refusal, Unavailable
from apps.agent.release.confirm import confirm
from apps.agent.release.releases import replace_link
from tests.conformance.bundles import make_bundle
from tests.conformance.inside import Inside, inside
from tests.conformance.slow_haproxy import SlowHaproxy

pytestmark = [pytest.mark.long, pytest.mark.e2e]


@contextmanager
def node_with_slow_haproxy(**more: Any) -> Iterator[tuple[Inside, SlowHaproxy]]:
    """A node that runs generation 1, and the binary that it was started with."""
    with inside(slow=SlowHaproxy, settings={"check_timeout": 1.0, "confirm_timeout": 20.0} | more) as node:
        node.push(make_bundle(node.port), 1)
        assert node.slow is not None
        yield node, node.slow


@pytest.mark.parametrize(
    ("word", "line", "stage"),
    [
        ("check", "sleep 30", "validate"),
        ("check", "kill -9 $$", "validate"),
        ("check", "echo '[ALERT] (1) : config : parsing [haproxy.cfg:1] : half a lin'; kill -9 $$", "validate"),
        ("check", "echo 'prlimit: failed to set the limit'; exit 1", "validate"),
        ("check", "echo '[ALERT] (1) : config : out of memory.'; exit 1", "validate"),
        ("trial", "sleep 30", "trial_run"),
        ("trial", "kill -9 $$", "trial_run"),
    ],
)
def test_a_node_that_lacks_time_or_memory_refuses_nothing_and_takes_the_same_bundle_later(
    word: str, line: str, stage: str
) -> None:
    with node_with_slow_haproxy() as (node, slow):
        wanted = make_bundle(node.port, answer="two")
        slow.before(word, line)
        with pytest.raises(Unavailable) as failure:
            node.push(wanted, 2)
        assert (failure.value.stage, node.get(), node.live) == (stage, (200, "one"), "1")
        assert "Generation 2 was not taken" in node.node.state()["unavailable"]
        slow.before(word, "")
        assert node.push(wanted, 2)["unavailable"] == ""
        assert node.get() == (200, "two")


def test_control_the_same_node_refuses_what_haproxy_itself_objects_to() -> None:
    with node_with_slow_haproxy() as (node, _slow):
        with pytest.raises(Refusal, match="unknown keyword") as refusal:
            node.push(make_bundle(node.port, extra="frontend lst-9\n    bogus word\n"), 2)
        assert (refusal.value.stage, refusal.value.line, node.node.state()["unavailable"]) == ("validate", 21, "")


CRASH = "grep -q two {config} && kill -11 $$"


@pytest.mark.parametrize(("word", "stage"), [("check", "validate"), ("trial", "trial_run")])
def test_files_on_which_haproxy_crashes_each_time_are_refused(word: str, stage: str) -> None:
    with node_with_slow_haproxy() as (node, slow):
        slow.before(word, CRASH.format(config="haproxy.cfg"))
        with pytest.raises(Refusal, match="signal 11") as refusal:
            node.push(make_bundle(node.port, answer="two"), 2)
        assert (refusal.value.stage, node.get(), node.live) == (stage, (200, "one"), "1")
        assert node.push(make_bundle(node.port, answer="three"), 3)["generation"] == 3


@pytest.mark.parametrize("word", ["check", "trial"])
def test_a_haproxy_that_crashes_once_or_on_everything_has_judged_nothing(word: str) -> None:
    with node_with_slow_haproxy() as (node, slow):
        slow.before(word, "kill -11 $$")
        with pytest.raises(Unavailable, match="signal 11"):
            node.push(make_bundle(node.port, answer="two"), 2)
        slow.before(word, "[ -e $(dirname $0)/crashed ] || { touch $(dirname $0)/crashed; kill -11 $$; }")
        assert node.push(make_bundle(node.port, answer="two"), 2)["generation"] == 2


def test_a_runtime_change_on_which_haproxy_crashes_is_refused_as_well() -> None:
    with node_with_slow_haproxy() as (node, slow):
        base, wanted = make_bundle(node.port), make_bundle(node.port, answer="two")
        slow.before("check", CRASH.format(config="haproxy.cfg"))
        with pytest.raises(Refusal, match="signal 11"):
            node.operate((), wanted, base.digest, 2, "haproxy.cfg")
        assert (node.live, node.get()) == ("1", (200, "one"))


@pytest.mark.exhaustive  # how long is asked in tests/pure
def test_a_large_bundle_is_given_longer_than_an_empty_one() -> None:
    """Eighty certificates are worth 1.6 seconds: a check of two and a half ends in time."""
    with node_with_slow_haproxy() as (node, slow):
        slow.before("check", "sleep 1.5")
        with pytest.raises(Unavailable, match="within 1 seconds"):
            node.push(make_bundle(node.port, answer="two"), 2)
        many = {f"certs/crt-{number}.pem": b"not read" for number in range(80)}
        assert node.push(make_bundle(node.port, answer="two", more=many), 3)["generation"] == 3


def test_a_full_disk_at_the_switch_leaves_the_old_release_live_and_is_no_refusal() -> None:
    full: list[bool] = []

    def switch(link: Path, target: Path) -> None:
        if full and target.name == "2":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace_link(link, target)

    with inside(replace_link=switch) as node:
        node.push(make_bundle(node.port), 1)
        full.append(True)
        with pytest.raises(Unavailable, match="No space left"):
            node.push(make_bundle(node.port, answer="two"), 2)
        assert (node.live, node.get()) == ("1", (200, "one"))
        full.clear()
        assert node.push(make_bundle(node.port, answer="two"), 2)["generation"] == 2


def test_a_disk_that_fills_up_behind_the_switch_puts_the_old_release_back() -> None:
    def confirm_on_a_full_disk(*given: Any) -> None:
        if given[2].generation == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        confirm(*given)

    with inside(confirm=confirm_on_a_full_disk) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Unavailable, match="No space left"):
            node.push(make_bundle(node.port, answer="two"), 2)
        assert (node.live, node.get()) == ("1", (200, "one"))


@pytest.mark.exhaustive  # of checks and trial runs it is asked above
def test_a_worker_that_comes_up_too_late_is_no_verdict_on_the_bundle() -> None:
    with node_with_slow_haproxy(confirm_timeout=1.0) as (node, slow):
        slow.before("reload", "sleep 3")
        with pytest.raises(Unavailable):
            node.push(make_bundle(node.port, answer="two"), 2)
        slow.before("reload", "")
        assert node.push(make_bundle(node.port, answer="two"), 3)["generation"] == 3
        assert node.get() == (200, "two")


@pytest.mark.parametrize("word", ["out of memory", "No space left on device"])
def test_words_that_somebody_wrote_into_an_object_are_not_taken_for_haproxys(word: str) -> None:
    output = f"[ALERT]    (7) : config : parsing [haproxy.cfg:21] : unknown keyword '{word}' in 'frontend' section\n"
    assert isinstance(failure_from(output, "validate", None, 1), Refusal)
    assert isinstance(failure_from(output.replace(f"'{word}'", word), "validate", None, 1), Unavailable)
