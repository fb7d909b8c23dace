"""Many containers at a time: how many, and that none holds another up."""

from __future__ import annotations

import threading

import pytest

from tfy.errors import UnreachableError
from tfy.yarn.logs_look import LOOKERS, Lookout
from tfy.yarn.logs_model import Listing, Place

LISTING = Listing({"worker-0.log": 5}, final=False)


def make_places(count: int) -> list[Place]:
    return [
        Place(container_id=f"c{number}", task=f"worker:{number}", node_web="n:1") for number in range(count)
    ]


class Hosts:
    """Each look meets the others that are under way; those of `silent` end only once they are let go."""

    def __init__(self, *silent: str, together: int = 1) -> None:
        self.silent = silent
        self.go = threading.Event()
        self.asked: list[str] = []
        self.now = self.most = 0
        self._lock = threading.Lock()
        self._together = threading.Barrier(together)

    def look(self, place: Place) -> Listing:
        with self._lock:
            self.asked.append(place.container_id)
            self.now += 1
            self.most = max(self.most, self.now)
        self._together.wait(20)
        if place.container_id in self.silent:
            assert self.go.wait(20)
        with self._lock:
            self.now -= 1
        if place.task == "worker:1":
            raise UnreachableError("refused")
        return LISTING

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        raise NotImplementedError


def test_as_many_as_may_are_looked_at_together() -> None:
    hosts = Hosts(together=LOOKERS)
    places = make_places(3 * LOOKERS)
    answers = Lookout(hosts).look(places, patience_s=20)
    assert hosts.most == LOOKERS
    assert [place.container_id for place in places if answers[place.container_id] == LISTING] == [
        place.container_id for place in places if place.task != "worker:1"
    ]
    refused = answers["c1"]
    assert isinstance(refused, UnreachableError) and refused.message == "refused"


def test_a_silent_host_is_heard_later_and_not_asked_twice() -> None:
    hosts = Hosts("c0")
    lookout, places = Lookout(hosts), make_places(3)
    first = lookout.look(places, patience_s=0.5)
    assert first["c2"] == LISTING
    silent = first["c0"]
    assert isinstance(silent, UnreachableError) and "n:1 has not answered yet" in silent.message
    hosts.go.set()
    assert lookout.look(places, patience_s=20)["c0"] == LISTING
    assert sorted(hosts.asked) == ["c0", "c1", "c1", "c2", "c2"]


def test_a_fault_of_our_own_is_no_silence() -> None:
    with pytest.raises(threading.BrokenBarrierError):
        hosts = Hosts(together=1)
        hosts._together.abort()
        Lookout(hosts).look(make_places(1), patience_s=20)
