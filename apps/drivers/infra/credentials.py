"""The keys: a reference becomes environment of one Terraform process, and nothing else anywhere.

`env:NAME` takes `SPILLWAY_CLOUD_<NAME>_ACCESS_KEY_ID`, `…_SECRET_ACCESS_KEY` and `…_SESSION_TOKEN` (AWS) or
`SPILLWAY_CLOUD_<NAME>_CREDENTIALS` (Google: JSON, or the path of a file with it) of this process's environment: a name
is a suffix, so that no definition can send another secret of ours to a server of its choice. `profile:NAME` is a
profile of the cloud's own configuration files, `role:ARN` a role that the provider takes on; an empty reference leaves
it to the machine's own identity.

A definition may name another endpoint than the cloud's own. What comes there is worth protecting: Google's tokens,
AWS's session tokens, private keys of certificates. So the environment names it as well, or nothing is found here:
`SPILLWAY_CLOUD_<NAME>_ENDPOINT` for `env:NAME`, `SPILLWAY_CLOUD_ENDPOINT` for everything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from apps.compiler.grammar import GrammarError, environment_name
from apps.drivers.infra.contract import InfraError
from apps.drivers.pins import NotNamed, named_endpoint

# What the clouds' own tools find by themselves, where a reference names nothing else.
OWN = {
    "aws": (
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONFIG_FILE"),
        *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_SHARED_CREDENTIALS_FILE"),
        *("AWS_EC2_METADATA_DISABLED", "AWS_CA_BUNDLE", "HOME"),
    ),
    "google": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "CLOUDSDK_CONFIG", "HOME"),
}
FILES = {"aws": ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HOME"), "google": ("CLOUDSDK_CONFIG", "HOME")}
PREFIX, ENDPOINT = "SPILLWAY_CLOUD_", "ENDPOINT"
KEYS = {
    "aws": {
        "AWS_ACCESS_KEY_ID": "ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY": "SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN": "SESSION_TOKEN",
    },
    "google": {"GOOGLE_CREDENTIALS": "CREDENTIALS"},
}
OPTIONAL = frozenset({"AWS_SESSION_TOKEN"})


def environment(
    reference: str, providers: Iterable[str], endpoints: Iterable[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables for the providers (`aws`, `google`); `given` is this process's environment.

    `endpoints` are the URLs that the definition names instead of the cloud's own. Raises InfraError.
    """
    given = os.environ if given is None else given
    found: dict[str, str] = {}
    for provider in providers:
        if provider in OWN:
            found |= _of(provider, reference, given)
    for url in endpoints:
        _refuse_unnamed(reference, url, given)
    return found


def role_of(reference: str) -> str:
    """The role that the provider is to take on, empty where the reference names none."""
    return reference.removeprefix("role:") if reference.startswith("role:") else ""


def _of(provider: str, reference: str, given: Mapping[str, str]) -> dict[str, str]:
    kind, _, name = reference.partition(":")
    if not reference or kind == "role":
        return {key: given[key] for key in OWN[provider] if key in given}
    if kind == "profile":
        files = {key: given[key] for key in FILES[provider] if key in given}
        return files | {"AWS_PROFILE": name} if provider == "aws" else files
    try:
        name = environment_name(reference)
    except GrammarError:
        raise InfraError("The credentials' reference is none: use env:NAME, profile:NAME or role:ARN.") from None
    found = {key: given.get(f"{PREFIX}{name}_{suffix}", "") for key, suffix in KEYS[provider].items()}
    missing = [f"{PREFIX}{name}_{KEYS[provider][key]}" for key in found if not found[key] and key not in OPTIONAL]
    if missing:
        raise InfraError(f"Spillway's environment has no {' and no '.join(missing)}: env:{name} needs it.")
    return {key: value for key, value in found.items() if value}


def _refuse_unnamed(reference: str, endpoint: str, given: Mapping[str, str]) -> None:
    kind, _, name = reference.partition(":")
    variable, whose = f"{PREFIX}{ENDPOINT}", "credentials of this machine"
    if kind == "env":
        variable, whose = f"{PREFIX}{name}_{ENDPOINT}", reference
    try:
        named_endpoint(endpoint, variable=variable, whose=whose, given=given)
    except NotNamed as refusal:
        raise InfraError(refusal.message) from None
