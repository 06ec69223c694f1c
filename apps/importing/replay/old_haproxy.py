"""The old side of a replay of haproxy.cfg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from apps.importing.contract import Import
from apps.importing.files import Files
from apps.importing.haproxy.rules.variables import read_variables
from apps.importing.haproxy.text.sections import Configuration
from apps.importing.haproxy.traffic.context import context_of
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import Answer, Asked
from apps.importing.replay.explaining import Explaining
from apps.importing.replay.programs import haproxy_complaint, run_haproxy
from apps.importing.replay.standing import Standing
from apps.importing.verdicts import Ledger

ASKING = ("server", "errorfile", "bind", "stats")


class OldHaproxy:
    """A haproxy.cfg that runs here with stub servers."""

    def __init__(self, text: str, files: Mapping[str, str], options: ImportOptions, found: Import) -> None:
        self._configuration = Configuration(text, options.environment, Ledger())
        self._context = context_of(self._configuration, Files(files), options)
        read_variables(self._context)
        self._report = found.report
        self._explaining: Explaining | None = None
        self.ports: dict[int, int] = {}
        self.encrypted: dict[int, bool] = {}
        self.pools = {
            each.removeprefix("Pool "): line.text.split()[1]
            for line in found.report if line.text.split()[0] in ("backend", "listen")
            for each in line.objects if each.startswith("Pool ")
        }  # fmt: skip

    def words(self) -> list[str]:
        """Words of lines that may say something of hosts and paths."""
        sections = self._configuration.of_kind("frontend", "backend", "listen")
        return [word for each in sections for line in each.lines if line.keyword not in ASKING for word in line.words]

    def write(self, stubs: Mapping[str, int], folder: Path, spare: Iterator[int], certificate: Path) -> None:
        """The file for this machine; `ports` are known from here on. Raises NotReplayable."""
        standing = Standing(self._context, stubs, folder, spare, tcp=True)
        (folder / "old.cfg").write_text(standing.text(certificate))
        if haproxy_complaint(folder / "old.cfg"):  # what is tcp may need more of its machine than requests do
            standing = Standing(self._context, stubs, folder, spare, tcp=False)
            (folder / "old.cfg").write_text(standing.text(certificate))
        self.ports, self.encrypted = standing.ports, standing.encrypted
        self._explaining = Explaining(self._context, self._report, standing.sections)

    @contextmanager
    def running(self, folder: Path) -> Iterator[None]:
        """HAProxy with that file."""
        with run_haproxy(folder / "old.cfg", folder):
            yield

    def lines(self, request: Asked, before: Answer, after: Answer) -> tuple[int, ...]:
        """Lines of the report that say every difference; none where one is said by none."""
        if self._explaining is None:
            return ()
        return self._explaining.lines(request, before, after, encrypted=self.encrypted[request.port]) or ()
