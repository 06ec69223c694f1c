"""For tests of certificates: chains of every kind, good and bad, made by the command openssl for each run."""

from __future__ import annotations

import datetime as dt
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

NAME = "shop.acme.example"
ROOT = "root"
Pair = tuple[str, str]
# Four primes are found in a tenth of the time of two, and nodes take such a key.
_RSA = ("-algorithm", "RSA", "-pkeyopt")
KEYS = {
    **{f"RSA {bits}": (*_RSA, f"rsa_keygen_bits:{bits}") for bits in (1024, 2048, 3072, 4096)},
    "RSA 8192": (*_RSA, "rsa_keygen_bits:8192", "-pkeyopt", "rsa_keygen_primes:5"),
    **{f"P-{bits}": ("-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:P-{bits}") for bits in (192, 224, 256, 384)},
    "P-521": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"),
    "Ed25519": ("-algorithm", "ED25519"),
    "Ed448": ("-algorithm", "ED448"),
}


def openssl(*words: str, text: str = "") -> str:
    """What the command says."""
    done = subprocess.run(["openssl", *words], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def key_of(kind: str) -> str:
    """A private key, PEM."""
    if kind == "DSA":
        return openssl("genpkey", "-paramfile", "/dev/stdin", text=openssl("dsaparam", "1024"))
    return openssl("genpkey", *KEYS[kind])


@cache
def signed(kind: str, digest: str = "sha256", by: str = "", name: str = NAME) -> Pair:
    """A certificate for `name` with its key; signed by an authority whose key is of the kind `by`, or by itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "key").write_text(key_of(kind))
        words = ["req", "-x509", "-key", f"{path}/key", "-subj", f"/CN={name}", "-days", "60"]
        words += ["-addext", f"subjectAltName=DNS:{name}"] if name == NAME else []
        if kind not in ("Ed25519", "Ed448"):
            words += [f"-{digest}"]
        if by:
            for file, content in zip(("ca", "cakey"), signed(by, name=ROOT), strict=True):
                (path / file).write_text(content)
            words += ["-CA", f"{path}/ca", "-CAkey", f"{path}/cakey"]
        return openssl(*words), key_of(kind)


def alone(kind: str, digest: str = "sha256") -> Pair:
    """A certificate that signs itself."""
    return signed(kind, digest)


def must_staple() -> Pair:
    """A certificate that demands an OCSP response with each connection."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        path.write_text(key_of("P-256"))
        words = ["req", "-x509", "-key", str(path), "-subj", f"/CN={NAME}", "-days", "60", "-sha256"]
        words += ["-addext", f"subjectAltName=DNS:{NAME}", "-addext", "tlsfeature=status_request"]
        return openssl(*words), key_of("P-256")


def below(kind: str) -> Pair:
    """A good certificate and then its authority with a key of this kind."""
    chain, key = signed("P-256", by=kind)
    return chain + signed(kind, name=ROOT)[0], key


def below_an_old_root(digest: str) -> Pair:
    """A good certificate below an authority whose signature over itself is of this digest."""
    chain, key = signed("P-256", by="RSA 2048")
    return chain + signed("RSA 2048", digest, name=ROOT)[0], key


def signed_weakly(digest: str) -> Pair:
    """A certificate that a good authority signed with this digest."""
    chain, key = signed("P-256", digest, by="RSA 2048")
    return chain + signed("RSA 2048", name=ROOT)[0], key


def wrong_order() -> Pair:
    """The authority first."""
    chain, key = below("P-384")
    blocks = chain.split("-----END CERTIFICATE-----\n")
    return "-----END CERTIFICATE-----\n".join((blocks[1], blocks[0], "")), key


def with_a_stranger() -> Pair:
    """A good certificate, and an authority that has nothing to do with it."""
    chain, key = signed("P-256", by="RSA 2048")
    return chain + signed("P-384", name=ROOT)[0], key


def below_an_expired_authority() -> Pair:
    """Made here: the command cannot make what has expired."""
    root, leaf, now = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1()), _now()
    made = []
    for subject, key, days in ((NAME, leaf, 60), (ROOT, root, -1)):
        builder = x509.CertificateBuilder(_named(ROOT), _named(subject), key.public_key(), 1)
        builder = builder.not_valid_before(now - 60 * _DAY).not_valid_after(now + days * _DAY)
        if subject == NAME:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        made.append(builder.sign(root, SHA256()).public_bytes(Encoding.PEM).decode())
    return "".join(made), leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


_DAY = dt.timedelta(days=1)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def repeated(times: int) -> Pair:
    """So many certificates: a good chain, and its authority again and again."""
    chain, key = below("P-256")
    return chain + signed("P-256", name=ROOT)[0] * (times - 2), key


def rewritten(change: Callable[[str], str]) -> Pair:
    """A good chain and key, both written down otherwise."""
    chain, key = below("P-256")
    return change(chain), change(key)
