"""Replaying haproxy.cfg: lines of 1.x in words of today, and what ports of a range are asked."""

from __future__ import annotations

import pytest

from apps.importing.replay.connecting import MOST_ALIKE, openings
from apps.importing.replay.contract import NotReplayable
from apps.importing.replay.old_lines import today


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("block", "if", "bad"), ["http-request", "deny", "if", "bad"]),
        (("reqadd", "X-A: b"), ["http-request", "add-header", "X-A", "b"]),
        (("rspidel", "^Server:.*"), ["http-response", "del-header", "Server"]),
        (("reqrep", "^([^ :]*) /old/(.*)", r"\1 /new/\2"), ["http-request", "replace-uri", "^/old/(.*)", r"/new/\1"]),
        (("reqrep", "^([^ ]*) /a/(.+)$", r"\1 /\2", "if", "x"),
         ["http-request", "replace-uri", "^/a/(.*)$", r"/\1", "if", "x"]),
        (("reqirep", "^Host:.*", "Host: a"), ["http-request", "replace-header", "Host", "(?i)^.*", "a"]),
        (("rsprep", "^Location: http://(.*)", r"Location: https://\1"),
         ["http-response", "replace-header", "Location", "^http://(.*)", r"https://\1"]),
    ],
)  # fmt: skip
def test_a_line_of_1_x_is_a_rule_of_today(old: tuple[str, ...], new: list[str]) -> None:
    assert today(old) == new


@pytest.mark.parametrize(
    "old",
    [
        ("reqrep", "^(GET|POST) /a/(.*)", r"\1 /\2"),
        ("reqrep", "^([^ ]*) /a", r"\1 /b"),
        ("reqrep", "^([^ ]*) /a/([^ ]*) (.*)", r"\1 /\2 \3"),
        ("reqrep", "^X-A: (.*)", r"X-B: \1"),
        ("rsprep", "^([^ ]*) /a/(.*)", r"\1 /\2"),
        ("reqpass", "^Host: .*"),
    ],
)
def test_what_has_no_word_today_is_not_replayed(old: tuple[str, ...]) -> None:
    with pytest.raises(NotReplayable):
        today(old)


def test_each_port_of_a_range_is_asked_and_few_of_them_in_every_way() -> None:
    ports = range(1000, 1100)
    listeners = {port: {"name": f"tcp-{port}", "port": port, "default_pool": "a"} for port in ports}
    other = {80: {"name": "tcp-80", "port": 80, "default_pool": "b"}}
    asked = [each.port for each in openings([], listeners | other, dict.fromkeys([*ports, 80], False))]
    assert set(asked) == {*ports, 80}
    in_every_way = [port for port in (*ports, 80) if asked.count(port) > 1]
    assert in_every_way == [*ports[:MOST_ALIKE], 80]
