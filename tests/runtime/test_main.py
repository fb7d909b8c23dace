"""The cluster side's edge: whatever happens, YARN is told and the process ends."""

from __future__ import annotations

import pytest

from tfy.errors import UnreachableError
from tfy.runtime import __main__ as edge
from tfy.runtime.rendezvous import RendezvousLostError


class Skein:
    """Hears only the call after `deaf` calls."""

    def __init__(self, deaf: int) -> None:
        self.deaf = deaf
        self.heard: list[tuple[str, str]] = []

    def shutdown(self, status: str, diagnostics: str) -> None:
        if self.deaf:
            self.deaf -= 1
            raise RendezvousLostError("busy")
        self.heard.append((status, diagnostics))


def test_the_end_is_told_until_it_is_heard() -> None:
    skein = Skein(deaf=2)
    edge.end_application(skein, "SUCCEEDED", "digits: succeeded")
    assert skein.heard == [("SUCCEEDED", "digits: succeeded")]


def test_an_application_that_never_hears_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "_END_LIMIT_S", 0.0)
    with pytest.raises(UnreachableError, match="busy"):
        edge.end_application(Skein(deaf=10), "FAILED", "x")


def test_diagnostics_have_a_length_that_yarn_keeps() -> None:
    skein = Skein(deaf=0)
    edge.end_application(skein, "FAILED", "x" * 100_000)
    ((_, diagnostics),) = skein.heard
    assert len(diagnostics) == 16 << 10


def test_a_wrong_verb_is_refused() -> None:
    assert edge.main(["tfy.runtime", "dance"], {}) == 2
    assert edge.main(["tfy.runtime"], {}) == 2
