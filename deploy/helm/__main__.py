"""Writes what the chart accepts: `python -m deploy.helm` makes deploy/helm/spillway/values.schema.json.

Settings are listed by name, as the console reads them: helm refuses a misspelt one, and a secret one outside a Secret.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from controlplane import environment, settings  # noqa: F401 - reading the settings fills what is known

Schema = dict[str, Any]
TARGET = Path(__file__).resolve().parent / "spillway" / "values.schema.json"
# The image says where things lie in it, and that it is production.
OF_THE_IMAGE = {
    "SPILLWAY_ENV",
    "SPILLWAY_VAR",
    "SPILLWAY_STATIC_ROOT",
    "SPILLWAY_AGENT_CA",
    "SPILLWAY_AGENT_CERTIFICATE",
    "SPILLWAY_AGENT_KEY",
}
# By these, which name no secret, a secret of the Secret is bound to servers.
FAMILIES = ("^SPILLWAY_DNS_[A-Z0-9_]+_SERVERS$", "^SPILLWAY_CLOUD_[A-Z0-9_]+_ENDPOINT$")
PROGRAMS = ("worker", "webhook-worker", "schedule", "collector", "log-collector", "loadgen", "terraform")
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SWITCH: Schema = {"type": "boolean"}
ANY_MAP: Schema = {"type": "object"}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
# As Kubernetes takes names of objects.
NAME: Schema = {"type": "string", "pattern": "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$"}
NEEDED_NAME: Schema = {**NAME, "minLength": 1}
HOST: Schema = {"type": "string", "pattern": r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"}
NETWORK: Schema = {"type": "string", "pattern": r"^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$"}


def some(**properties: Schema) -> Schema:
    """An object with these fields and no others; each may be left out."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def many(each: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": each}


def of_settings() -> Schema:
    """Every setting that is no secret and that no image decides."""
    known = {
        each.name: {**TEXT, "description": each.what}
        for each in environment.KNOWN.values()
        if not each.secret and each.name not in OF_THE_IMAGE
    }
    return {**some(**known), "patternProperties": dict.fromkeys(FAMILIES, TEXT)}


def schema() -> Schema:
    """Of all values, with what must be given."""
    program = some(replicas=COUNT, resources=ANY_MAP)
    found = some(
        image=some(repository=TEXT, tag=TEXT, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}),
        imagePullSecrets=many(some(name=NAME)),
        host=HOST,
        existingSecret=NEEDED_NAME,
        settings=of_settings(),
        logs=some(existingClaim=NAME),
        consoleCa=some(existingSecret=NAME, key=TEXT),
        agentCertificates=some(existingSecret=NAME),
        console=some(
            replicas={**COUNT, "minimum": 1},
            webProcesses={**COUNT, "minimum": 1},
            resources=some(front=ANY_MAP, web=ANY_MAP, events=ANY_MAP),
        ),
        programs=some(**dict.fromkeys(PROGRAMS, program)),
        service=some(
            type={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
            port={"type": "integer", "minimum": 1, "maximum": 65535},
            annotations=TEXTS,
        ),
        ingress=some(enabled=SWITCH, className=NAME, annotations=TEXTS, tlsSecret=NAME),
        trustedProxies=many(NETWORK),
        networkPolicy=some(enabled=SWITCH, **{"from": many(ANY_MAP)}),
        serviceAccount=some(create=SWITCH, name=NAME, annotations=TEXTS),
        podAnnotations=TEXTS,
        nodeSelector=TEXTS,
        tolerations=many(ANY_MAP),
        **{"global": ANY_MAP},  # helm puts it there
    )
    return {"$schema": "http://json-schema.org/draft-07/schema#", **found, "required": ["host", "existingSecret"]}


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
