"""The command adopt: what it asks the server for, what it prints, and the file that plan and apply take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.client.main import main
from tests.apps.test_command_line_verbs import Server, server

__all__ = ["server"]
ARN = "arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/app/old/50dc"
REGION = ["--region", "eu-central-1"]
OBJECT = {"kind": "LoadBalancer", "name": "front", "spec": {"listeners": []}}
LINES = [
    {"found": "listener HTTP 80", "verdict": "mapped", "reason": "", "kind": "LoadBalancer", "name": "front/http-80"},
    {"found": "listener UDP 53", "verdict": "left_out", "reason": "UDP has no place.", "kind": "", "name": ""},
]


def test_without_an_id_it_lists_what_stands_there(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found = {"kind": "Application Load Balancer", "name": "old", "id": ARN}
    empty, full = ({"region": "eu-central-1", "load_balancers": each} for each in ([], [found]))
    server.put("GET cloud-accounts/prod/load-balancers", full, empty)
    assert main(["adopt", "prod", *REGION]) == 0
    assert ARN in capsys.readouterr().out
    assert server.asked[0][1] == {"region": "eu-central-1"}
    assert main(["adopt", "prod", *REGION]) == 0
    assert "no load balancer in this region" in capsys.readouterr().out


def test_one_is_ordered_reported_and_kept_in_a_new_file(
    server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.put("POST cloud-accounts/prod/adopt", {"objects": [OBJECT], "report": LINES})
    file = tmp_path / "adopted.json"
    words = ["adopt", "prod", ARN, *REGION, "--name", "front", "--stack", "aws-eu", "-f", str(file)]
    pairs = ["--our-region", "eu-central-1=frankfurt", "--certificate", "arn:path=x=shop", "--address", "192.0.2.1=ip"]
    assert main([*words, *pairs]) == 0
    assert server.asked[0][2] == {
        "region": "eu-central-1",
        "id": ARN,
        "name": "front",
        "stack": "aws-eu",
        "regions": {"eu-central-1": "frankfurt"},
        "certificates": {"arn:path=x": "shop"},
        "addresses": {"192.0.2.1": "ip"},
    }
    shown = capsys.readouterr().out
    assert shown.index("UDP 53") < shown.index("HTTP 80"), "what is gone stands first"
    assert "1 left out, 1 mapped." in shown
    assert json.loads(file.read_text()) == {"objects": [OBJECT]}
    assert main([*words, *pairs]) == 1, "a file that is there is not written over"
    assert json.loads(file.read_text()) == {"objects": [OBJECT]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prod", ARN], "--name"),
        (["prod", ARN, "--name", "x", "--our-region", "frankfurt"], "THEIRS=OURS"),
        (["prod", ARN, "--name", "x", "--address", "a=b", "--address", "a=c"], "once"),
        (["prod/../x"], "not a valid object name"),
    ],
)
def test_words_that_make_no_order_are_refused_before_anything_is_asked(
    server: Server, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["adopt", *words, *REGION]) == 1
    assert said in capsys.readouterr().err
    assert server.asked == []
