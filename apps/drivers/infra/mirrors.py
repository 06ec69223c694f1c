"""The providers: where Terraform finds them without asking anybody, and the CLI configuration that says so."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

REGISTRY = "registry.terraform.io"
VARIABLE = "TF_PLUGIN_MIRROR"
IMPLIED = ("/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins")
ANYWHERE = f"*/*/{REGISTRY}"


def mirror(given: Mapping[str, str] | None = None, root: Path = Path("/")) -> Path | None:
    """The directory that holds `registry.terraform.io/…`: the variable's, one that Terraform implies, one near root.

    Providers run with the credentials of clouds: what others can write to (`/tmp`) is passed over near root.
    """
    given = os.environ if given is None else given
    if given.get(VARIABLE):
        return Path(given[VARIABLE])
    implied = [Path(given["HOME"]) / ".terraform.d" / "plugins"] if given.get("HOME") else []
    for directory in [*implied, *map(Path, IMPLIED)]:
        if (directory / REGISTRY).is_dir():
            return directory
    near = (found for found in sorted(root.glob(ANYWHERE)) if found.is_dir())
    return next((found.parent for found in near if _is_ours(found, root)), None)


def _is_ours(found: Path, root: Path) -> bool:
    """Whether nobody but the machine's administrator and this user can put something at the path."""
    within = [found, *(parent for parent in found.parents if parent != root and root in parent.parents)]
    stats = [each.stat() for each in within]
    return all(each.st_uid in {0, os.geteuid()} and not each.st_mode & stat.S_IWOTH for each in stats)


def cli_configuration(cache: Path, given: Mapping[str, str] | None = None) -> str:
    """What the file of TF_CLI_CONFIG_FILE says: the mirror first, the registry (kept in `cache`) for all else."""
    found = mirror(given)
    lines = ["disable_checkpoint = true"]
    if found is None:
        return "\n".join([*lines, f"plugin_cache_dir = {json.dumps(str(cache))}", ""])
    sources = sorted(
        f"{REGISTRY}/{path.parent.name}/{path.name}" for path in (found / REGISTRY).glob("*/*") if path.is_dir()
    )
    words = json.dumps(sources)
    lines += [
        "provider_installation {",
        f"  filesystem_mirror {{\n    path = {json.dumps(str(found))}\n    include = {words}\n  }}",
        f"  direct {{\n    exclude = {words}\n  }}",
        "}",
        "",
    ]
    return "\n".join(lines)
