"""Who waits for a node waits at least as long as the node gives its HAProxy."""

from __future__ import annotations

from pathlib import Path

from apps.agent.check.load_time import load_seconds
from apps.agent.settings import Settings
from apps.compiler.bundle import Bundle, assemble
from apps.drivers.proxy.agent import push_seconds


def _bundle(certificates: int, megabytes: int) -> Bundle:
    files = {f"certs/crt-{number}.pem": b"" for number in range(certificates)}
    return assemble({**files, "haproxy.cfg": b"#" * megabytes * 1_000_000}, (), {})


def _written(bundle: Bundle, folder: Path) -> Path:
    for path, content in bundle.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_many_certificates_are_given_ten_times_the_measured_time(tmp_path: Path) -> None:
    measured_s = 0.0012
    assert load_seconds(_written(_bundle(200, 0), tmp_path)) > 10 * 200 * measured_s


def test_the_control_plane_waits_for_all_that_a_node_may_do(tmp_path: Path) -> None:
    settings = Settings("us-1", tmp_path)
    for certificates, megabytes in ((0, 0), (200, 2)):
        bundle = _bundle(certificates, megabytes)
        load = load_seconds(_written(bundle, tmp_path))
        check_and_trial = 2 * (settings.check_timeout + load)
        reload_and_back = 2 * (settings.confirm_timeout + load)
        assert push_seconds(bundle) >= check_and_trial + reload_and_back
