"""A cluster for tests of logs: containers that write, NodeManagers that forget, late aggregation.

It stands for the world outside; each look at the job lets the next thing happen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.views import make_report, make_view
from tfy.errors import UnreachableError
from tfy.records import TaskRecord
from tfy.states import ApplicationState, JobState, TaskState
from tfy.yarn.follow import JobView
from tfy.yarn.logs import iter_lines
from tfy.yarn.logs_model import GoneError, Listing, LogLine, LogRequest, Place
from tfy.yarn.logs_places import LogSources
from tfy.yarn.rest import ApplicationLogs

SKEIN, SPARK = "application_1_0001", "application_1_0002"
RUNNING = make_view(ApplicationState.RUNNING)
ENDED = make_view(ApplicationState.FINISHED, "succeeded")
# Small pieces, so that lines are cut everywhere.
PIECE_BYTES = 1000


@dataclass
class Container:
    """One container: its files, and who has them."""

    id: str
    task: str
    files: dict[str, bytes] = field(default_factory=dict)
    live: bool = True
    aggregated: bool = False
    ended: bool = False
    unreachable: bool = False
    silence: threading.Event | None = None
    """Its NodeManager answers once this is set, or gives up."""

    def write(self, text: str | bytes, time: float | None = None) -> None:
        """Its program writes; with `time`, its node notes when."""
        log = f"{self.task.replace(':', '-')}.log"
        data = text.encode() if isinstance(text, str) else text
        self.files[log] = self.files.get(log, b"") + data
        if time is not None:
            times = log.replace(".log", ".times")
            note = f"{time:.2f} {len(self.files[log])}\n".encode()
            self.files[times] = self.files.get(times, b"") + note

    def end(self) -> None:
        """The NodeManager serves it still."""
        self.ended = True

    def vanish(self) -> None:
        """The NodeManager has forgotten it."""
        self.live = False

    def aggregate(self) -> None:
        """Its logs are where aggregated logs are."""
        self.live, self.aggregated = False, True


class World:
    """The job, its containers, and what happens at each look at the job, in order."""

    def __init__(self, *containers: Container, tasks: tuple[str, ...] = ("worker:0", "worker:1")) -> None:
        self.containers = {container.id: container for container in containers}
        self.tasks = tasks
        self.view = RUNNING
        self.aggregation = "NOT_START"
        self.steps: list[Callable[[], None]] = []
        self.told: list[str] = []
        self.looks = 0
        self.told_of = True
        """Whether the driver has told of the containers."""
        self.trouble: str | None = None
        """Why its word cannot be read."""
        self.copied: list[str] = []
        """The containers whose programs' aggregated logs were read, piece by piece."""
        self.refusal: str | None = None
        """Why the aggregated logs cannot be read."""

    def end_job(self, aggregation: str = "SUCCEEDED") -> None:
        """The application has ended."""
        self.view, self.aggregation = ENDED, aggregation

    def lines(self, request: LogRequest, limit_s: float = 20.0) -> Iterator[LogLine]:
        """What is read of it."""
        sources = LogSources(
            live=_Live(self), aggregated=_Aggregated(self), ask_yarn=self._ask, task_names=self.tasks
        )
        return iter_lines(self._look, sources, request, self.told.append, limit_s=limit_s)

    def texts(self, request: LogRequest) -> list[str]:
        """The lines' texts with their tasks."""
        return [f"{line.task} {line.line}" for line in self.lines(request)]

    def _look(self) -> JobView:
        self.looks += 1
        if self.steps:
            self.steps.pop(0)()
        records = [
            TaskRecord(
                task=container.task, state=TaskState.RUNNING, container_id=container.id, node_web="n:1"
            )
            for container in self.containers.values()
            if ":" in container.task
        ]
        report = make_report(JobState.RUNNING, *records, phase="training")
        application = replace(self.view.application, id=SKEIN)
        report = replace(report, spark_application_id=SPARK)
        told = report if self.told_of else None
        return replace(self.view, application=application, report=told, trouble=self.trouble)

    def _ask(self, application_id: str) -> ApplicationLogs:
        number = application_id.rpartition("_")[2]
        master = f"container_1_{number}_01_000001"
        return ApplicationLogs(master if master in self.containers else None, "n:1", self.aggregation)


class _Live:
    def __init__(self, world: World) -> None:
        self._world = world

    def look(self, place: Place) -> Listing:
        container = self._find(place)
        if container.silence is not None and not container.silence.wait(10):
            raise UnreachableError("the NodeManager n:1 does not answer: timed out")
        return Listing({name: len(data) for name, data in container.files.items()}, container.ended)

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        # Up to what it has, as a NodeManager does.
        return self._find(place).files[name][start:][:PIECE_BYTES] if start < size else b""

    def _find(self, place: Place) -> Container:
        container = self._world.containers.get(place.container_id)
        if container is not None and container.unreachable:
            raise UnreachableError("the NodeManager n:1 does not answer: timed out")
        if container is None or not container.live:
            raise GoneError("n:1 does not have it")
        return container


class _Aggregated:
    def __init__(self, world: World) -> None:
        self._world = world

    def list_containers(self, application_id: str) -> Mapping[str, Mapping[str, int]]:
        if self._world.refusal is not None:
            raise UnreachableError(self._world.refusal)
        number = application_id.rpartition("_")[2]
        found = {
            container.id: {name: len(data) for name, data in container.files.items()}
            for container in self._world.containers.values()
            if container.aggregated and container.id.split("_")[2] == number
        }
        if not found:
            raise GoneError("no aggregated logs")
        return found

    def look(self, place: Place) -> Listing:
        listed = self.list_containers(place.application_id)
        if place.container_id not in listed:
            raise GoneError("its logs are not aggregated")
        return Listing(listed[place.container_id], final=True)

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        if name.endswith(".log"):
            self._world.copied.append(place.container_id)
        return self._world.containers[place.container_id].files[name][start:size][:PIECE_BYTES]
