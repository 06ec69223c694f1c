"""A router for tests of addresses that BGP announces: BIRD in the clients' namespace, equal paths side by side."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.e2e.address_env import PATIENCE, Net, run, wait_until

ROUTER_AS, NODES_AS = 65000, 65010
HEAD = """log stderr all;
router id 10.77.0.254;
protocol device { }
protocol bfd { interface "*" { interval 300 ms; multiplier 3; }; }
protocol kernel { merge paths on; ipv4 { export all; }; }
protocol kernel { merge paths on; ipv6 { export all; }; }
"""
SESSION = """protocol bgp {name} {{
    local as 65000; neighbor {address} as 65010; hold time 9; bfd on;
    connect retry time 2; connect delay time 1; error wait time 1, 2; {family} {{ import all; export none; }};
}}
"""
FLAGS = (
    "--bgp-as", str(NODES_AS),
    "--bgp-neighbour", f"{ROUTER_AS}@10.77.0.254",
    "--bgp-neighbour", f"{ROUTER_AS}@2001:db8:77::fe",
)  # fmt: skip


class Router:
    """Knows the ways to each address and spreads connections over them."""

    def __init__(self, net: Net) -> None:
        self._net = net
        text = HEAD
        for node in net.nodes:
            text += SESSION.format(name=f"four{node.number}", address=node.address, family="ipv4")
            text += SESSION.format(name=f"six{node.number}", address=node.address_6, family="ipv6")
        config = net.folder / "router.conf"
        config.write_text(text)
        for family in ("ipv4", "ipv6"):
            knob = f"net.{family}.fib_multipath_hash_policy=1"
            run("ip", "netns", "exec", net.clients, "sysctl", "-w", knob)
        self.log = net.folder / "router.log"
        command = ["ip", "netns", "exec", net.clients, "bird", "-f", "-c", str(config), "-s", str(self._socket)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log, stdout=log)
        wait_until(self._socket.exists, f"the router runs: {self.log.read_text()}")

    @property
    def _socket(self) -> Path:
        return self._net.folder / "router.sock"

    def ways(self, address: str) -> set[str]:
        """Addresses of the nodes to which the kernel would send packets for the address now."""
        family = "-6" if ":" in address else "-4"
        found = run("ip", "-n", self._net.clients, "-json", family, "route", "show", address).stdout
        ways: set[str] = set()
        for row in json.loads(found or "[]"):
            ways |= {hop["gateway"] for hop in [row, *row.get("nexthops", [])] if "gateway" in hop}
        return ways

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE)
