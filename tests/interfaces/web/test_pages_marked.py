"""Sentences with `code` in them are shown with code, and nothing in them is markup of its own."""

from __future__ import annotations

import re

from django.urls import reverse

from apps.accounts.actors import Actor
from apps.web.templatetags.marked import marked
from tests.interfaces.people import client_of

NO_TEXT = re.compile(r"<(script|style|textarea|pre)\b.*?</\1>", re.DOTALL)


def test_what_stands_between_backticks_is_code_and_escaped() -> None:
    assert marked("Use `a` or `b & c`.") == "Use <code>a</code> or <code>b &amp; c</code>."
    assert marked("`<img src=x>` <b>") == "<code>&lt;img src=x&gt;</code> &lt;b&gt;"


def test_hints_and_errors_of_forms_show_no_backticks(tutorial_env: Actor, acme: Actor) -> None:
    client = client_of(acme)
    shown = client.get(reverse("web:policy-new")).content.decode()
    assert "only to those regions of <code>order</code>" in shown
    assert "`" not in NO_TEXT.sub("", shown)
    sent = {"name": "bad", "hostname": "*", "path": "/a/../b", "load_balancer": "front", "action": "redirect"}
    refused = client.post(reverse("web:route-new"), sent).content.decode()
    assert "Remove the <code>.</code> and <code>..</code> segments" in refused
    assert "`" not in NO_TEXT.sub("", refused)
