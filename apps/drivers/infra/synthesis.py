"""The synthesis from outside: a document becomes `cdk.tf.json` in a fresh process, or is remembered."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from apps.drivers.extras import missing
from apps.drivers.infra.contract import InfraError
from apps.drivers.infra.synthesize import RESULT

# Raise it when synthesize.py makes something else of the same document.
OURS = 1
LONGEST_S = 60
REMEMBERED = 16
ROOT = Path(__file__).resolve().parents[3]

_known: OrderedDict[str, bytes] = OrderedDict()
_lock = threading.Lock()


def key_of(document: Mapping[str, Any], backend: str) -> str:
    """What the result depends on: the document, where its state lives, this code, the version of cdktn."""
    asked = {"document": document, "backend": backend, "ours": OURS, "cdktn": version("cdktn")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def synthesized(document: Mapping[str, Any], backend: str) -> bytes:
    """The bytes of `cdk.tf.json`. Raises InfraError."""
    for need in document["providers"]:
        if what := missing(need["name"]):
            raise InfraError(what)
    key = key_of(document, backend)
    with _lock:
        known = _known.get(key)
    if known is not None:
        return zlib.decompress(known)
    made = _made(document, backend)
    with _lock:
        _known[key] = zlib.compress(made, level=3)
        while len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return made


def _made(document: Mapping[str, Any], backend: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="spillway-synth-") as directory:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": directory, "HOME": directory}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "apps.drivers.infra.synthesize", directory],
                input=json.dumps({"document": document, "backend": backend}).encode(),
                cwd=ROOT,
                env=environment,
                capture_output=True,
                check=False,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            raise InfraError(f"The synthesis took longer than {LONGEST_S} s.") from None
        found = Path(directory) / RESULT
        if done.returncode or not found.exists():
            words = done.stderr.decode(errors="replace")[-2000:]
            raise InfraError("The document could not be synthesized.", output=words)
        return found.read_bytes()
