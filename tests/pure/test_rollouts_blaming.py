"""HAProxy's own words are mapped back to whose line or file it is, and to nobody by text of theirs."""

from __future__ import annotations

import pytest

from apps.compiler.bundle import assemble
from apps.drivers.proxy.contract import Refused
from apps.rollouts.culprits.blaming import owners_named

OWNERS = {10: "lst-2", 20: "pool-3", 21: "srv-4", 30: "route-9"}
FILES = {"haproxy.cfg": b"\n", "maps/lb-1-exact.map": b"a.example/ route-5\nb.example/ route-6\n"}
BUNDLE = assemble(FILES, (), OWNERS)
# As HAProxy 2.6 says it (tests/e2e/test_rollout_live.py has it say so).
SAID = {
    "config : parsing [haproxy.cfg:10] : 'bind 10.0.0.1:443' in section 'frontend' : 'crt-list' : error processing "
    "line 1 in file 'certs/lst-2.list' : unable to load chain certificate into SSL Context 'certs/crt-19.pem'.": [
        "crt-19"
    ],
    "config : [haproxy.cfg:21] : 'server pool-3/srv-4' : unknown keyword 'wrong'.": ["srv-4"],
    "config : parsing [haproxy.cfg:20] : balance only supports 'roundrobin' and others.": ["pool-3"],
    "config : backend 'pool-7' has no server available!": ["pool-7"],
    "config : Server pool-7/srv-8 : unable to use it.": ["srv-8"],
    "config : parsing [haproxy.cfg:10] : invalid value at line 2 of file <maps/lb-1-exact.map>.": ["route-6"],
    "config : parsing [haproxy.cfg:10] : invalid value at line 9 of file <maps/lb-1-exact.map>.": [],
    "config : parsing [haproxy.cfg:10] : 'bind 10.0.0.1:443' in section 'frontend' : cannot bind socket.": [],
    "config : Fatal errors found in configuration.": [],
}


@pytest.mark.parametrize("said", SAID)
def test_an_alert_is_about_whoever_wrote_the_line_or_the_file(said: str) -> None:
    refusal = Refused(f"HAProxy rejects the file: {said}", stage="validate", output=f"[ALERT]    (7) : {said}\n")
    assert list(owners_named(refusal, BUNDLE)) == SAID[said]


def test_text_of_one_customer_blames_no_other() -> None:
    said = "config : parsing [haproxy.cfg:30] : unknown keyword 'certs/crt-19.pem' in backend 'pool-7'."
    refusal = Refused(said, stage="validate", output=f"[ALERT] (7) : {said}\n")
    assert list(owners_named(refusal, BUNDLE)) == ["route-9"]


def test_a_warning_before_the_alert_blames_nobody() -> None:
    output = (
        "[WARNING] (7) : config : parsing [haproxy.cfg:30] : odd.\n[ALERT] (7) : config : [haproxy.cfg:21] : bad.\n"
    )
    assert owners_named(Refused("bad", stage="validate", line=30, output=output), BUNDLE) == {"srv-4": "bad."}


def test_every_alert_counts_and_an_older_agent_sends_the_line_alone() -> None:
    output = "[ALERT] (7) : [haproxy.cfg:20] : one.\n[ALERT] (7) : [haproxy.cfg:30] : two.\n"
    found = owners_named(Refused("one", stage="validate", output=output), BUNDLE)
    assert found == {"pool-3": "one.", "route-9": "two."}
    assert list(owners_named(Refused("no", stage="validate", line=20), BUNDLE)) == ["pool-3"]
