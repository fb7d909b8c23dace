"""What logs are made of: containers, their files, and lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Protocol

from tfy.contract import task_name, type_of_task
from tfy.errors import SpecError, UnreachableError
from tfy.paths import DRIVER_LOG, parse_program_log

DRIVER = "driver"
SPARK_AM = "spark am"

_CONTAINER = re.compile(r"container_(?:e\d+_)?(\d+)_(\d+)_\d+_(\d+)")
# What the NodeManager writes into every container's log folder, and the clocks (tfy.runtime.log_clock).
_NO_LOGS = re.compile(r"launch_container\.sh|directory\.info|prelaunch\.(?:out|err)|.*\.times(?:_new)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log, without its end.

    `time` is when it was written, seconds since the epoch, known to about half a second; None where
    nobody noted it. `task` is the task's name, or `driver` or `spark am`; `source` the file's name.
    """

    time: float | None
    task: str
    source: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which lines to give. No tasks are all tasks."""

    tasks: tuple[str, ...] = ()
    driver: bool = False
    system: bool = False
    """Also what Skein, Spark and the nodes wrote; and nothing is folded."""
    tail: int | None = None
    """Of each log the last lines only, so many."""
    follow: bool = False
    """Go on until the job has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One container with logs. `node_web` is its NodeManager's `host:port` where that is known."""

    container_id: str
    task: str
    node_web: str | None = None

    @property
    def application_id(self) -> str:
        """YARN's application that the container belongs to."""
        return application_of(self.container_id)


@dataclass(frozen=True, slots=True)
class Listing:
    """A container's log files and their sizes in bytes; `final`: they will not grow any more."""

    sizes: Mapping[str, int]
    final: bool


# A log is read in pieces of this size, whatever its length.
PIECE_BYTES = 4 << 20
_HEADER_LINES = 16


class GoneError(UnreachableError):
    """A source of logs does not have this container: not yet, or not any more."""


class LogSource(Protocol):
    """Where logs are read. Raises `GoneError`, and `UnreachableError` where it gives no answer."""

    def look(self, place: Place) -> Listing:
        """The container's files at this moment."""
        ...

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        """A piece of a file from byte `start`, of a file that had at least `size` bytes; empty at its end."""
        ...


def application_of(container_id: str) -> str:
    """The application id in a container id; raises `UnreachableError` where it is none."""
    found = _CONTAINER.fullmatch(container_id)
    if found is None:
        raise UnreachableError(f"{container_id!r} is no container id")
    return f"application_{found.group(1)}_{found.group(2)}"


def is_master(container_id: str) -> bool:
    """Whether this is the container of an application master, by its number."""
    found = _CONTAINER.fullmatch(container_id)
    return found is not None and int(found.group(3)) == 1


def task_of_program_log(name: str) -> str | None:
    """The task whose program wrote the file `name`; None for any other file."""
    found = parse_program_log(name)
    return task_name(*found) if found else None


def select_tasks(names: tuple[str, ...], wanted: Iterable[str]) -> tuple[str, ...]:
    """The tasks of a job (`names`) that are wanted by name or by type, in the job's order; all where none is.

    Raises `SpecError` that lists them where one is wanted that the job does not have.
    """
    wanted = tuple(wanted)
    for name in wanted:
        if name not in names and name not in map(type_of_task, names):
            raise SpecError(f"{name}: the job has no such task; its tasks: {', '.join(names)}")
    return tuple(name for name in names if not wanted or name in wanted or type_of_task(name) in wanted)


def wants_file(name: str, place: Place, tasks: tuple[str, ...], request: LogRequest) -> bool:
    """Whether the file `name` of a container is among what was asked for."""
    task = task_of_program_log(name)
    if task is not None:
        return task in tasks
    if name == DRIVER_LOG and request.driver:
        return True
    if not request.system or _NO_LOGS.fullmatch(name):
        return False
    return place.task in tasks or ":" not in place.task


def read_header(body: IO[bytes], origin: str) -> int:
    """Reads Hadoop's header of a log up to its contents; the length of the whole file, in bytes."""
    length = None
    for _ in range(_HEADER_LINES):
        line = body.readline(2000)
        if line.startswith(b"LogLength:"):
            length = int(line.removeprefix(b"LogLength:"))
        if line == b"LogContents:\n" and length is not None:
            return length
    raise UnreachableError(f"{origin}: not a log as Hadoop gives it out")


def place_of(container_id: str, files: Iterable[str]) -> Place:
    """A container by what is in its log folder, where nobody has told what it was for."""
    files = tuple(files)
    tasks = [task for task in map(task_of_program_log, files) if task is not None]
    if tasks:
        return Place(container_id=container_id, task=tasks[0])
    if DRIVER_LOG in files:
        return Place(container_id=container_id, task=DRIVER)
    task = SPARK_AM if is_master(container_id) else f"container {container_id.rpartition('_')[2]}"
    return Place(container_id=container_id, task=task)
