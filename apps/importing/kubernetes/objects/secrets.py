"""Secrets and ConfigMaps that others name: certificates, authorities, users. Their values never reach the report."""

from __future__ import annotations

import base64
import binascii

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.definitions.values.certificates import canonical_pem
from apps.importing.kubernetes.context import Context, Ref
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.fields import mapping
from apps.importing.values.pem import chain_in, key_in

SHORTEST_PASSWORD = 8


def certificate(context: Context, ref: Ref) -> str:
    """The name of the certificate of a Secret: one that stands for it, its own content, or one that must be said."""
    key = "/".join(ref)
    given = context.options.certificates.get(key)
    secret = context.find("Secret", ref)
    if given:
        if secret is not None:
            _use(secret, ("tls.crt", "tls.key"), f"Certificate {given}")
        return given
    name = context.names.name("Certificate", "-".join(ref) if ref[0] != "default" else ref[1])
    chain, private = _pair(secret)
    if secret is not None and chain and private:
        context.certificates[name] = {"chain": chain, "key": private}
        _use(secret, ("tls.crt", "tls.key"), f"Certificate {name}")
    else:
        context.need(f"The certificate of the Secret {key} (--certificate {key}=NAME).")
    return name


def _pair(secret: Manifest | None) -> tuple[str, str]:
    if secret is None:
        return "", ""
    text = f"{value_of(secret, 'tls.crt')}\n{value_of(secret, 'tls.key')}"
    return chain_in(text), key_in(text)


def value_of(secret: Manifest, key: str) -> str:
    """A value of a Secret or a ConfigMap, decoded; empty where it is none."""
    plain = secret.at("stringData" if secret.kind == "Secret" else "data", key)
    if isinstance(plain, str):
        return plain
    coded = secret.at("data", key) if secret.kind == "Secret" else None
    try:
        return base64.b64decode("".join(str(coded or "").split()), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def authorities(context: Context, ref: Ref, kinds: tuple[str, ...] = ("Secret", "ConfigMap")) -> str:
    """The PEM of `ca.crt`; asked for where it is not in the file."""
    for kind in kinds:
        found = context.find(kind, ref)
        text = value_of(found, "ca.crt") if found is not None else ""
        chain = chain_in(text)
        if found is not None and chain:
            _use(found, ("ca.crt",), "")
            return canonical_pem(chain)
    context.need(f"The {' or '.join(kinds)} {'/'.join(ref)} with ca.crt; add it to the YAML.")
    return ""


def users(context: Context, ref: Ref, *, as_map: bool, key: str = "auth") -> dict[str, str] | None:
    """Names and passwords of a file of htpasswd (`key`), or of keys and hashes; None where the Secret is missing."""
    secret = context.find("Secret", ref)
    if secret is None:
        context.need(f"The Secret {'/'.join(ref)} with the names of its users; add it to the YAML.")
        return None
    keys = _keys(secret)
    if as_map:
        pairs = [(each, value_of(secret, each)) for each in keys]
    else:
        lines = [line.partition(":") for line in value_of(secret, key).splitlines() if ":" in line]
        pairs = [(name.strip(), coded) for name, _, coded in lines]
    _use(secret, tuple(keys if as_map else (key,)), "")
    found = {}
    for name, coded in pairs:
        try:
            found[authentication.user_name(name)] = _password(context, name, coded)
        except GrammarError as error:
            context.need(f"Another name of the user {name} in the Secret {'/'.join(ref)}: {error.message}")
    if not found:
        context.need(f"The Secret {'/'.join(ref)} names no user; add them to the YAML.")
    return found or None


def _keys(secret: Manifest) -> list[str]:
    return [str(key) for part in ("data", "stringData") for key in mapping(secret.at(part))]


def _password(context: Context, name: str, coded: str) -> str:
    """Empty where the Secret has only a hash; the stored one stays then."""
    plain = coded.strip().removeprefix("{PLAIN}") if coded.strip().startswith("{PLAIN}") else ""
    found = context.options.passwords.get(name) or plain
    if len(found) >= SHORTEST_PASSWORD:
        return found
    longer = f"of at least {SHORTEST_PASSWORD} characters " if found else ""
    context.need(f"The password {longer}of user {name} (--password {name}=…).")
    return ""


def _use(secret: Manifest, keys: tuple[str, ...], owner: str) -> None:
    owners = (owner,) if owner else ()
    secret.mapped(("kind",), *owners)
    secret.mapped(("type",), *owners)
    for key in keys:
        for part in ("data", "stringData"):
            secret.mapped((part, key), *owners)
