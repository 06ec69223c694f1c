"""The environment as a page: `python -m controlplane.configuration` prints docs/operate/configuration.md."""

from __future__ import annotations

import sys

from controlplane import environment, settings  # noqa: F401 - reading the settings fills what is known

_INTRODUCTION = """# Configuration

A console and its workers read these variables when they start. A wrong one stops the start of every process with its
name and an example, and all that is wrong is named at once. An empty one counts as not set where the default is empty,
and is wrong elsewhere. `spillway-admin check` says whether they fit together.
This page is printed by `python -m controlplane.configuration`.
"""
_SECRETS = """
## Secrets of servers and clouds

Definitions name credentials as `env:NAME` and never hold them. The workers' environment holds them, and beside each
the servers that may see it:

| variable | for | page |
|---|---|---|
| `SPILLWAY_DNS_<NAME>`, `SPILLWAY_DNS_<NAME>_SERVERS` | key of a zone's server; the servers | [DNS](../use/dns.md) |
| `SPILLWAY_CLOUD_<NAME>_…`, `SPILLWAY_CLOUD_<NAME>_ENDPOINT` | keys of a cloud account | [clouds](../use/clouds.md) |

The agent has flags instead of variables: `apps/agent/README.md`. The demo's ports are in [the demo](../start/demo.md).
"""


def page() -> str:
    """The page about all of them, by group, in the order of the settings."""
    lines = [_INTRODUCTION]
    for title in dict.fromkeys(each.group for each in environment.KNOWN.values()):
        lines += [f"## {title}", "", "| variable | default | what it is for |", "|---|---|---|"]
        for each in environment.KNOWN.values():
            if each.group == title:
                shown = f"`{each.default}`" if each.default else ""
                lines.append(f"| `{each.name}` | {shown} | {each.what} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + _SECRETS


if __name__ == "__main__":
    sys.stdout.write(page())
