"""EndpointSlices of a real API server: kube-apiserver, built from Go's module proxy, with a real etcd.

Skipped where there is no Go, no proxy, or no program `etcd` (Debian: etcd-server). There is no cluster: nothing runs
pods, and the test writes the slices that Kubernetes' own controller would write.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from apps.definitions.server_sources.kubernetes import client
from apps.definitions.server_sources.kubernetes.client import Cluster, Watch, list_slices
from apps.definitions.server_sources.kubernetes.namespace import Namespace
from apps.definitions.server_sources.watched import Failed, Gone
from apps.definitions.shapes.servers.source import read_source
from tests.api_server import ending, endpoint, endpoint_slice
from tests.golang import CACHE, go
from tests.ports import spare_port
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(2400)]
MODULE = Path(__file__).with_name("kubernetes_api")
PROGRAM = CACHE / "bin" / "kube-apiserver"
BUILT_IN_S = 1800
SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
WEB = read_source("kubernetes://prod/shop/web:http")


class RealServer:
    """etcd and kube-apiserver; the operator's token may read the slices of one namespace and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, spare_port()
        etcd, peers = spare_port(), spare_port()
        at = f"http://127.0.0.1:{etcd}"
        words = ["--listen-client-urls", at, "--advertise-client-urls", at]
        words += ["--listen-peer-urls", f"http://127.0.0.1:{peers}", "--data-dir", str(folder / "etcd")]
        key = rsa.generate_private_key(65537, 2048)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / "sa.key").write_bytes(private)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / "sa.pub").write_bytes(public)
        (folder / "tokens.csv").write_text('admin-token,admin,1,"system:masters"\nreader-token,reader,2\n')
        (folder / "token").write_text("reader-token\n")
        self._words = [
            str(PROGRAM), "--etcd-servers", at, "--secure-port", str(self.port), "--bind-address", "127.0.0.1",
            "--cert-dir", str(folder), "--token-auth-file", str(folder / "tokens.csv"), "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://kubernetes", "--service-cluster-ip-range", "10.0.0.0/24",
            "--service-account-key-file", str(folder / "sa.pub"),
            "--service-account-signing-key-file", str(folder / "sa.key"),
        ]  # fmt: skip
        self._log = (folder / "log").open("wb")
        self._etcd = subprocess.Popen([shutil.which("etcd") or "etcd", *words], stdout=self._log, stderr=self._log)
        self._server: subprocess.Popen[bytes] | None = None
        self.cluster = Cluster(f"https://127.0.0.1:{self.port}", str(folder / "apiserver.crt"), str(folder / "token"))

    def start(self) -> None:
        """Start the API server and wait until it is ready."""
        self._server = subprocess.Popen(self._words, stdout=self._log, stderr=self._log)
        until(lambda: self.call("GET", "/readyz") is not None, 120)

    def kill(self) -> None:
        """End the API server at once."""
        if self._server is not None:
            self._server.kill()
            self._server.wait(10)

    def end(self) -> None:
        """End everything."""
        self.kill()
        self._etcd.kill()
        self._etcd.wait(10)
        self._log.close()

    def call(self, method: str, path: str, body: Any = None) -> bytes | None:
        """The answer to an administrator; None where there is none."""
        try:
            context = ssl.create_default_context(cafile=self.cluster.ca_file)
            request = urllib.request.Request(f"{self.cluster.url}{path}", method=method)  # noqa: S310 - our own
            request.add_header("Authorization", "Bearer admin-token")
            request.add_header("Content-Type", "application/json")
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(request, data, 5, context=context) as answer:  # noqa: S310 - our own
                return bytes(answer.read())
        except (OSError, urllib.error.HTTPError):
            return None

    def put(self, each: dict[str, Any]) -> None:
        """Create or replace a slice."""
        name = each["metadata"]["name"]
        whole = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", **each}
        assert self.call("PUT", f"{SLICES}/{name}", whole) or self.call("POST", SLICES, whole)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    if shutil.which("etcd") is None:
        pytest.skip("There is no program etcd.")
    words = ("build", "-mod=mod", "-ldflags", "-s -w", "-o", str(PROGRAM), "k8s.io/kubernetes/cmd/kube-apiserver")
    built = go(*words, cwd=MODULE, patience_s=BUILT_IN_S)
    if isinstance(built, str) or built.returncode:
        pytest.skip(f"kube-apiserver was not built. {built if isinstance(built, str) else built.stderr[-300:]}")
    running = RealServer(tmp_path_factory.mktemp("kubernetes"))
    try:
        running.start()
        _allow(running)
        yield running
    finally:
        running.end()


def _allow(server: RealServer) -> None:
    """The namespace, and the rights that docs/use/servers.md names."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop"
    rule = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}
    group = "rbac.authorization.k8s.io"
    assert server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    assert server.call("POST", f"{rbac}/roles", {"metadata": {"name": "spillway"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "spillway"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "spillway"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }
    assert server.call("POST", f"{rbac}/rolebindings", binding)


def addresses(watch: Namespace) -> list[str]:
    found = watch.servers_of(WEB)
    return sorted(f"{each.address}{' leaving' * each.leaving}" for each in found)


def test_a_real_cluster_is_listed_followed_lost_and_listed_again(server: RealServer) -> None:
    server.put(endpoint_slice("web-a", "web", endpoint("10.9.0.1", zone="a")))
    watch = Namespace(server.cluster, "shop", lambda: None)
    watch.start()
    try:
        until(lambda: addresses(watch) == ["10.9.0.1"])
        server.put(endpoint_slice("web-a", "web", endpoint("10.9.0.1"), ending("10.9.0.2")))
        assert until(lambda: addresses(watch) == ["10.9.0.1", "10.9.0.2 leaving"]) < 2
        server.put(endpoint_slice("web-b", "web", endpoint("10.9.0.3")))
        until(lambda: "10.9.0.3" in addresses(watch))
        assert server.call("DELETE", f"{SLICES}/web-b")
        until(lambda: "10.9.0.3" not in addresses(watch))
        server.kill()
        until(lambda: watch.error == "The cluster does not answer.")
        assert addresses(watch) == ["10.9.0.1", "10.9.0.2 leaving"]
        server.start()
        server.put(endpoint_slice("web-a", "web", endpoint("10.9.0.4")))
        until(lambda: addresses(watch) == ["10.9.0.4"] and watch.error == "", 90)
    finally:
        watch.stop()


def test_pages_forgotten_versions_and_missing_rights_are_told_as_the_fake_tells_them(server: RealServer) -> None:
    for number in range(5):
        server.put(endpoint_slice(f"page-{number}", "pages"))
    page, client.PAGE = client.PAGE, 2
    try:
        found, version = list_slices(server.cluster, "shop")
    finally:
        client.PAGE = page
    assert {f"page-{number}" for number in range(5)} <= found.keys()
    assert int(version) > 1
    server.kill()
    server.start()  # its memory of versions begins anew
    server.put(endpoint_slice("page-0", "pages", endpoint("10.9.0.9")))
    with pytest.raises(Gone):
        list(Watch(server.cluster, "shop", "1"))
    with pytest.raises(Failed, match=r"refuses us \(403\)"):
        list_slices(server.cluster, "kube-system")
