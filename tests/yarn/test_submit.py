"""Submitting where something fails: what is kept, what is removed, what is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.plans import make_small_plan
from tfy.errors import SpecError, UnreachableError
from tfy.yarn import submit
from tfy.yarn.application import NoAnswerError
from tfy.yarn.capacity import NodeFacts
from tfy.yarn.submit import Submission, check_queue, check_request, submit_job

NODE = NodeFacts(
    host="127.0.0.2",
    web="127.0.0.2:8042",
    labels=(),
    state="running",
    memory_mib=8192,
    vcores=8,
    gpus=0,
)


@dataclass
class PlayedYarn:
    """Takes the job, or raises `failing`."""

    failing: Exception | None = None
    queues: tuple[str, ...] = ("default",)
    nodes: tuple[NodeFacts, ...] = (NODE,)

    def list_queues(self) -> tuple[str, ...]:
        return self.queues

    def list_nodes(self) -> tuple[NodeFacts, ...]:
        return self.nodes

    def submit(self, _spec: object) -> str:
        if self.failing is not None:
            raise self.failing
        return "application_1_1"


@dataclass
class PlayedStorage:
    """Remembers what was deleted; `broken` makes every call fail."""

    broken: bool = False
    deleted: list[str] = field(default_factory=list)

    def write(self, uri: str, _data: bytes) -> None:
        if self.broken:
            raise UnreachableError(f"{uri}: full")

    def delete(self, uri: str) -> None:
        if self.broken:
            raise UnreachableError(f"{uri}: gone")
        self.deleted.append(uri)


@dataclass
class PlayedCluster:
    storage: PlayedStorage


CLUSTER: Any = PlayedCluster(PlayedStorage())


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Submission], list[str], PlayedStorage]]:
    monkeypatch.setattr(submit, "stage_job", lambda *_args: None)

    def run(yarn: PlayedYarn, storage: PlayedStorage) -> Any:
        announced: list[Submission] = []
        narrated: list[str] = []
        sources: Any = None
        cluster: Any = PlayedCluster(storage)
        played: Any = yarn
        submit_job(make_small_plan(), played, cluster, sources, announced.append, narrated.append)
        return announced, narrated, storage

    return run


def test_the_id_is_announced_though_it_cannot_be_noted(run: Callable[..., Any]) -> None:
    announced, narrated, _ = run(PlayedYarn(), PlayedStorage(broken=True))
    assert [submission.application_id for submission in announced] == ["application_1_1"]
    assert "could not be noted" in narrated[-1]


def test_a_refused_job_leaves_nothing(run: Callable[..., Any]) -> None:
    storage = PlayedStorage()
    with pytest.raises(UnreachableError, match="refuses"):
        run(PlayedYarn(UnreachableError("YARN refuses")), storage)
    assert storage.deleted == [make_small_plan().job_dir]


def test_a_job_that_yarn_may_have_taken_keeps_its_directory(run: Callable[..., Any]) -> None:
    storage = PlayedStorage()
    with pytest.raises(NoAnswerError) as raised:
        run(PlayedYarn(NoAnswerError("no answer")), storage)
    assert storage.deleted == []
    assert raised.value.hint == "YARN may have taken the job all the same: tfy status small"


def test_a_failed_cleaning_does_not_hide_the_cause(run: Callable[..., Any]) -> None:
    with pytest.raises(UnreachableError, match="refuses"):
        run(PlayedYarn(UnreachableError("YARN refuses")), PlayedStorage(broken=True))


def test_an_unknown_queue_is_refused_with_those_that_there_are() -> None:
    yarn: Any = PlayedYarn(queues=("a", "b"))
    with pytest.raises(SpecError, match="queue: default is no queue of this cluster; its queues: a, b"):
        check_request(make_small_plan(), yarn, CLUSTER, print)


def test_what_no_host_can_hold_is_refused() -> None:
    yarn: Any = PlayedYarn(nodes=(replace(NODE, memory_mib=512),))
    with pytest.raises(SpecError, match=r"memory: 1 GiB asked, the largest NodeManager \w+ 512 MiB"):
        check_request(make_small_plan(), yarn, CLUSTER, print)


@pytest.mark.parametrize("queue", ["default", "root.default"])
def test_queues_may_be_named_with_or_without_their_root(queue: str) -> None:
    check_queue(queue, ("default",))
    check_queue(queue, ("root.default",))
