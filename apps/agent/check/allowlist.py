"""Which words keepalived.conf and bird.conf may say; both programs have rights that haproxy lacks.

Either file could start programs or open files as root. Whatever a bundle brings, line by line it is one of these, or
the bundle is refused: the control plane decides about addresses and about nothing else on this machine.
"""

from __future__ import annotations

import re

from apps.agent.errors import Refusal

IP = r"[0-9a-f.:]{2,45}"
NODE = r"node-[0-9]{1,18}"
NUMBER = r"[0-9]{1,4}"

VRRP = (
    r"global_defs \{", r"vrrp_version 3", r"vrrp_check_unicast_src", r"enable_script_security",
    rf"vrrp_garp_master_refresh {NUMBER}", r"vrrp_script haproxy \{", r'script "\$\{CHECK\}"',
    rf"(?:interval|timeout|fall|rise) {NUMBER}", r"init_fail", r"vrrp_instance ip-[0-9]{1,18} \{", r"state BACKUP",
    r"interface \$\{INTERFACE\}", rf"virtual_router_id {NUMBER}", rf"@{NODE} priority {NUMBER}",
    r"advert_int [0-9.]{1,5}", r"nopreempt", rf"preempt_delay {NUMBER}", rf"@{NODE} unicast_src_ip {IP}",
    r"unicast_ttl 255", r"unicast_peer \{", rf"@\^{NODE} {IP} min_ttl 255", r"virtual_ipaddress \{",
    rf"{IP}/(?:32|128)", r"track_script \{", r"haproxy", r"\}",
)  # fmt: skip
BIRD = (
    r"protocol (?:device|bfd|static anycast[46]) \{", r'interface "\*" \{', rf"interval {NUMBER} ms;",
    rf"multiplier {NUMBER};", r"ipv[46];", rf"route {IP}/(?:32|128) blackhole;", r"filter announced \{",
    r"if !announcing then reject;", r'if proto = "anycast[46]" then accept;', r"reject;", r"\};?",
)  # fmt: skip
ALLOWLIST = {path: re.compile("|".join(lines)) for path, lines in (("keepalived.conf", VRRP), ("bird.conf", BIRD))}


def check_allowlist(path: str, text: str) -> None:
    """Raise Refusal unless each line of the file is one that may stand there."""
    for number, line in enumerate(text.split("\n"), 1):
        if line and not ALLOWLIST[path].fullmatch(line.lstrip(" ")):
            message = f"{path} has a line that is not allowed: {line.strip()[:60]!r}."
            raise Refusal(message, "validate", number, text[-2000:])
