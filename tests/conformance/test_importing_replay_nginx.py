"""Each nginx.conf of ours and what became of it, side by side on real nginx and HAProxy: answered equally."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.cli.replaying import replayed, told
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import NotReplayable, Replay

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
CORPUS = Path(__file__).resolve().parents[1] / "import" / "nginx"
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
FILES = [path for path in sorted(CORPUS.glob("*.conf")) if path.stem != "12-streams"]
# Of these the report says what differs; all others are answered equally to the last header.
SOME_DIFFER = {"03-path-replacement", "04-inheritance", "05-redirects", "08-access", "09-static-and-programs",
               "11-behind-a-balancer"}  # fmt: skip


def replayed_here(operator: Actor, text: str) -> Replay:
    options = ImportOptions(passwords={"alice": "a long password"})
    return replayed(operator, text, BESIDE, options, "nginx")


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_the_corpus_is_answered_equally(operator: Actor, path: Path) -> None:
    result = replayed_here(operator, path.read_text())
    print("\n".join(told(result)))
    assert not result.unexplained, list(told(result))
    assert result.asked > 10
    assert path.stem in SOME_DIFFER or not result.different, list(told(result))


def test_connections_of_tcp_are_not_replayed(operator: Actor) -> None:
    with pytest.raises(NotReplayable, match="takes http requests"):
        replayed_here(operator, (CORPUS / "12-streams.conf").read_text())
