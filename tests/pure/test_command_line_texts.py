"""What the command line prints: lines of errors, values that a terminal or Markdown would obey, exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from apps.cli.client import __version__, texts
from apps.cli.client.api import Api, Failure
from apps.cli.client.error_lines import line_of
from apps.cli.client.main import main
from tests.architecture.sources import ROOT

TEXT = """\
# routes of the shop
objects:
  - kind: Pool
    name: shop
    spec:
      backends:
        - region: us
          limit: {kind: rate, value: 10}
          servers:
            - {name: a, address: 10.0.0.1}
            - name: b
              address: 10.0.0.2

  - kind: Route
    name: home
    spec:
      hostname: shop.example
      action:
        pools:
        - pool: shop
        - pool: next
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("/objects", 2),
        ("/objects/0", 3),
        ("/objects/0/kind", 3),
        ("/objects/0/spec/backends/0/region", 7),
        ("/objects/0/spec/backends/0/limit/value", 8),
        ("/objects/0/spec/backends/0/servers/0/address", 10),
        ("/objects/0/spec/backends/0/servers/1/address", 12),
        ("/objects/1/name", 15),
        ("/objects/1/spec/hostname", 17),
        ("/objects/1/spec/action/pools/1/pool", 21),
        ("/objects/1/spec/missing", 16),
        ("/objects/7", 2),
        ("/dry_run", None),
        ("", None),
    ],
)
def test_a_pointer_leads_to_the_line_of_what_it_names_or_of_what_should_hold_it(pointer: str, line: int | None) -> None:
    assert line_of(TEXT, pointer) == line


def test_no_value_of_the_server_reaches_the_terminal_as_a_control_character() -> None:
    change = {"action": "update", "kind": "Route", "account": "a", "name": "x\x1b[2J"}
    body = {
        "counts": {"update": 1},
        "changes": [change | {"fields": [{"path": "/p", "before": "\r\n", "after": "\x9b31m"}]}],
        "warnings": ["\x07"],
    }
    shown = texts.plan(body) + texts.outline(body) + texts.markdown(body)
    assert {each for each in shown if not each.isprintable()} == {"\n"}


STACK = {
    "stack": "aws-eu",
    "target": "aws",
    "to_add": 1,
    "to_change": 2,
    "to_replace": 3,
    "to_delete": 0,
    "changes": ["route acme/cart: weight of acme/shop: 60 % → 50 %"],
    "refused": ["acme/cart: ALB cannot do this."],
    "warnings": ["acme/shop: ALB does it otherwise."],
    "decision": "person",
    "reason": "Every plan of this stack needs approval.",
}
# As customers get it.
NAMELESS = STACK | {"stack": None, "changes": [], "decision": None, "reason": ""}
OLD, NEW = {"ttl": 300, "values": ["192.0.2.1"]}, {"ttl": 60, "values": ["192.0.2.1", "192.0.2.2"]}
SERVED: list[dict[str, Any]] = [
    {"action": "update", "name": "www.a.test", "type": "A", "before": OLD, "after": NEW, "note": ""},
    {"action": "delete", "name": "old.a.test", "type": "A", "before": OLD, "after": None, "note": ""},
    {
        "action": "create",
        "name": "ip.a.test",
        "type": "A",
        "before": None,
        "note": "It waits.",
        "after": {"ttl": 300, "values": []},
    },
]
ZONE = {"zone": "operator/a", "domain": "a.test", "changes": SERVED, "more": 7, "warnings": ["a.test goes on."]}


def test_a_plan_says_what_becomes_of_stacks_and_zones() -> None:
    shown = texts.plan({"counts": {"update": 1}, "changes": [], "stacks": [STACK, NAMELESS], "zones": [ZONE]})
    assert shown.strip().splitlines() == [
        "Stack aws-eu (aws): 1 to add, 2 to change, 3 to replace, 0 to delete",
        "    route acme/cart: weight of acme/shop: 60 % → 50 %",
        "    Every plan of this stack needs approval.",
        "Zone a.test",
        "    ~ www.a.test A: 192.0.2.1 (ttl 300) → 192.0.2.1, 192.0.2.2 (ttl 60)",
        "    - old.a.test A: 192.0.2.1 (ttl 300)",
        "    + ip.a.test A: nothing yet (ttl 300) (It waits.)",
        "    … and 7 more.",
        "Warning: aws-eu would leave out acme/cart: ALB cannot do this.",
        "Warning: aws-eu: acme/shop: ALB does it otherwise.",
        "Warning: aws would leave out acme/cart: ALB cannot do this.",
        "Warning: aws: acme/shop: ALB does it otherwise.",
        "Warning: a.test goes on.",
        "Plan: 0 to create, 1 to update, 0 to delete, 0 unchanged.",
    ]


def test_a_comment_folds_away_stacks_and_zones_and_obeys_nothing_in_them() -> None:
    stack = STACK | {"changes": ["```\x1b</details><script>"], "reason": "</details>"}
    zone = ZONE | {"domain": "<b>", "changes": [SERVED[0] | {"note": "```"}]}
    comment = texts.markdown({"counts": {"update": 1}, "stacks": [stack], "zones": [zone]})
    assert {each for each in comment if not each.isprintable()} == {"\n"}
    assert "<summary>Stack aws-eu (aws): 1 to add, 2 to change, 3 to replace, 0 to delete</summary>" in comment
    assert "<b>" not in comment
    assert [line for line in comment.splitlines() if line.startswith("```")] == [
        *("```diff", "```"),
        *("````text", "```\\x1b</details><script>", "````"),
        *("````diff", "````"),
    ]


def test_a_comment_cannot_be_left_by_what_it_quotes() -> None:
    change = {"action": "create", "kind": "Route", "account": "a", "name": "x"}
    fields = [{"path": "/body", "before": None, "after": "```\n</details><img src=x>"}]
    fleets = [{"fleet": "<b>", "changes": [], "rendered": "+ ````", "warnings": ["`--><script>"]}]
    comment = texts.markdown({"counts": {"create": 1}, "changes": [change | {"fields": fields}], "fleets": fleets})
    assert "<script>" not in comment
    assert "<b>" not in comment
    assert [line for line in comment.splitlines() if line.startswith("```")] == [
        *("````diff", "````"),
        *("`````diff", "`````"),
    ]


def test_a_token_is_never_sent_in_the_clear_to_another_computer() -> None:
    with pytest.raises(Failure, match="https://"):
        Api("http://console.example", "sw_x")
    assert Api("http://127.0.0.1:8000", "sw_x").url
    assert "sw_x" not in repr(Api("https://console.example", "sw_x"))


@pytest.mark.parametrize("words", [[], ["nothing"], ["plan"], ["rollout", "x"], ["token", "revoke", "-1"]])
def test_words_that_cannot_be_understood_end_with_1_because_2_means_changes(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1


def test_the_command_says_the_version_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"spillway {__version__}\n"
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
