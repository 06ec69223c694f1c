"""Certificates that `bind` lines name: files, folders and lists, as objects of ours or as those that stand for them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from apps.importing.haproxy.traffic.context import Context
from apps.importing.values.pem import chain_in, key_in
from apps.importing.verdicts import Line

LISTED = "Certificates of the list are shown for the names in them, with the options of the listener alone."


class Certificates:
    """Names by path, and documents of those whose content was given."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.documents: dict[str, dict[str, Any]] = {}

    def of_bind(self, line: Line, paths: list[str], lists: list[str]) -> list[str]:
        """The names of a listener's certificates."""
        every = [path for each in filter(None, paths) for path in self._files(each)]
        for each in lists:
            entries = self.context.files.lines(each)
            if entries is None:
                self.context.ledger.differs(line, f"The list {each} was not given.")
                self.context.need(f"The file {each}.")
            every += [entry.split()[0] for entry in entries or ()]
            if any(len(entry.split()) > 1 for entry in entries or ()):
                self.context.ledger.differs(line, LISTED)
        return list(dict.fromkeys(self._name(line, path) for path in every))

    def _files(self, path: str) -> list[str]:
        path = self._full(path)
        if path in self.context.options.certificates or self.context.files.text(path) is not None:
            return [path]
        inside = [each for each in self.context.files.below(path) if not each.endswith((".key", ".ocsp", ".issuer"))]
        return inside or [path]

    def _full(self, path: str) -> str:
        if path.startswith(("@", "/")):
            return path
        for section in self.context.configuration.of_kind("global"):
            base = section.last("crt-base")
            if base is not None and len(base.words) > 1:
                return f"{base.words[1].rstrip('/')}/{path}"
        return path

    def _name(self, line: Line, path: str) -> str:
        """The certificate of this file; where its content is not there, one that must be made or named."""
        if path in self.context.options.certificates:
            return self.context.options.certificates[path]
        last = PurePosixPath(path.rstrip("/"))
        stem = last.name.removesuffix(last.suffix) if last.suffix in (".pem", ".crt", ".cer") else last.name
        name = self.context.name("Certificate", stem)
        text = self.context.files.text(path) or ""
        beside = str(last.parent / f"{last.stem}.key")
        key = self.context.files.text(path + ".key") or self.context.files.text(beside) or ""
        chain, private = chain_in(f"{text}\n{key}"), key_in(f"{text}\n{key}")
        if chain and private:
            self.documents[name] = {"chain": chain, "key": private}
            self.context.ledger.belongs(line, f"Certificate {name}")
        else:
            why = f"Create the certificate {name}, give the file {path}, or say --certificate {path}=NAME."
            self.context.ledger.differs(line, why)
            self.context.need(f"The certificate {path} (--certificate {path}=NAME).")
        return name


def client_certificates(
    context: Context, line: Line, verify: list[str], authorities: list[str], revoked: list[str]
) -> dict[str, Any]:
    """`verify required ca-file …` as what clients must present."""
    if not verify or verify[0] == "none" or not authorities:
        return {}
    text = context.files.text(authorities[0]) or ""
    chain = chain_in(text)
    if not chain:
        context.ledger.differs(line, f"Clients present certificates of {authorities[0]}; give this file.")
        context.need(f"The file {authorities[0]}.")
        return {}
    entry = {"mode": "required" if verify[0] == "required" else "optional", "ca": chain}
    lists = context.files.text(revoked[0]) if revoked else None
    if lists:
        entry["crl"] = lists
    elif revoked:
        context.ledger.differs(line, f"The revocation list {revoked[0]} was not given.")
    return {"client_certificates": [entry]}
