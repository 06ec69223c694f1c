"""A new key and the request for its certificate, made by the program `openssl`: the standard library makes neither."""

from __future__ import annotations

import subprocess
from pathlib import Path

from apps.agent.errors import Unavailable
from apps.agent.settings import absolute

SECONDS = 30
CONFIG = "[req]\ndistinguished_name = node\nprompt = no\n[node]\nCN = {}\n"


def make_key_and_request(folder: Path, name: str) -> None:
    """Write `key.pem` (mode 0600) and `request.pem` into the private folder. Raises Unavailable with a sentence."""
    key, config = folder / "key.pem", folder / "request.cnf"
    key.touch(mode=0o600)  # before anything is in it, whatever the umask is
    config.write_text(CONFIG.format(name))
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
    _openssl("req", "-new", "-config", str(config), "-key", str(key), "-out", str(folder / "request.pem"))


def _openssl(*words: str) -> None:
    try:
        done = subprocess.run(
            [absolute("openssl"), *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError:
        raise Unavailable("This node has no program `openssl`, which makes its key: install openssl.", "key") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"openssl {words[0]} took more than {SECONDS} seconds.", "key") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-400:]
        raise Unavailable(f"openssl {words[0]} failed: {said}", "key")
