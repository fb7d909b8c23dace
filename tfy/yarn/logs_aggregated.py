"""Logs after their application has ended: what the NodeManagers have put together on HDFS."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from tfy.bounded import call_within
from tfy.errors import UnreachableError
from tfy.yarn.logs_model import PIECE_BYTES, GoneError, Listing, Place, read_header

_CALL_LIMIT_S = 60.0
# A log is copied from HDFS at least at this rate, in bytes a second.
_SLOWEST_COPY = 4 << 20
# Several containers of one application are looked for at a time: one question serves them.
_ASK_AGAIN_S = 0.4
_ALL_BYTES = (1 << 63) - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Container:
    """One container in an application's aggregated logs."""

    node: str
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A local copy of a log from byte `start` on, which lies at byte `header` of the file `path`."""

    path: Path
    start: int
    header: int


class AggregatedLogs:
    """The aggregated logs of one user's applications, as a source of logs.

    Hadoop gives out the end of a log, not a piece: a log is copied from where it is read first (with a tail,
    its last bytes only), and the copy goes when its end has been read.
    """

    def __init__(self, start: Callable[[], JavaGateway], owner: str, scratch: Path) -> None:
        """`start` starts the Java process, or returns the one that runs; copies lie in `scratch`."""
        self._start = start
        self._owner = owner
        self._scratch = scratch
        self._asked: dict[str, float] = {}
        self._failures: dict[str, UnreachableError] = {}
        self._known: dict[str, _Container] = {}
        self._copies: dict[tuple[str, str], _Copy] = {}

    def list_containers(self, application_id: str) -> Mapping[str, Mapping[str, int]]:
        """The containers whose logs are there so far, each with its files and their sizes in bytes.

        Raises `GoneError` where there are none.
        """
        self._failures.pop(application_id, None)
        try:
            found = self._bounded(_CALL_LIMIT_S, lambda: self._list(application_id))
        except UnreachableError as error:
            self._failures[application_id] = error
            raise
        finally:
            self._asked[application_id] = time.monotonic()
        self._known.update(found)
        return {container: entry.sizes for container, entry in found.items()}

    def look(self, place: Place) -> Listing:
        """The container's files, which are whole."""
        asked = self._asked.get(place.application_id)
        if place.container_id not in self._known and (
            asked is None or time.monotonic() - asked > _ASK_AGAIN_S
        ):
            self.list_containers(place.application_id)
        found = self._known.get(place.container_id)
        if found is None:
            failure = self._failures.get(place.application_id)
            if failure is not None:
                raise failure
            raise GoneError(f"{place.container_id}: its logs are not aggregated")
        return Listing(found.sizes, final=True)

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        """A piece of a file from byte `start`, of a file that has `size` bytes; empty at its end."""
        if start >= size:
            return b""
        key = place.container_id, name
        copy = self._copies.get(key)
        if copy is None or start < copy.start:
            limit_s = _CALL_LIMIT_S + (size - start) / _SLOWEST_COPY
            copy = self._bounded(limit_s, lambda: self._copy(place, name, start, size))
            self._copies[key] = copy
        with copy.path.open("rb") as source:
            source.seek(copy.header + start - copy.start)
            data = source.read(min(PIECE_BYTES, size - start))
        if start + len(data) >= size:
            del self._copies[key]
            copy.path.unlink()
        return data

    @cached_property
    def _gateway(self) -> JavaGateway:
        return self._start()

    @cached_property
    def _factory(self) -> Any:
        hadoop = self._gateway.jvm.org.apache.hadoop.yarn
        configuration = hadoop.conf.YarnConfiguration()
        return hadoop.logaggregation.filecontroller.LogAggregationFileControllerFactory(configuration)

    def _request(self, application_id: str) -> tuple[Any, Any]:
        """Hadoop's reader of the application's logs, and a request to fill in."""
        hadoop = self._gateway.jvm.org.apache.hadoop.yarn
        application = hadoop.api.records.ApplicationId.fromString(application_id)
        reader = self._factory.getFileControllerForRead(application, self._owner)
        request = hadoop.logaggregation.ContainerLogsRequest()
        request.setAppId(application)
        request.setAppOwner(self._owner)
        return reader, request

    def _list(self, application_id: str) -> dict[str, _Container]:
        reader, request = self._request(application_id)
        request.setBytes(_ALL_BYTES)
        return {
            str(meta.getContainerId()): _Container(
                str(meta.getNodeId()),
                {str(file.getFileName()): int(file.getFileSize()) for file in meta.getContainerLogMeta()},
            )
            for meta in reader.readAggregatedLogsMeta(request)
        }

    def _copy(self, place: Place, name: str, start: int, size: int) -> _Copy:
        reader, request = self._request(place.application_id)
        request.setContainerId(place.container_id)
        request.setNodeId(self._known[place.container_id].node)
        request.setLogTypes(self._gateway.jvm.java.util.HashSet([name]))
        request.setBytes(start - size)
        path = self._scratch / f"{place.container_id}-{name}"
        sink = self._gateway.jvm.java.io.FileOutputStream(str(path))
        try:
            found = reader.readAggregatedLogs(request, sink)
        finally:
            sink.close()
        if not found:
            raise GoneError(f"{place.container_id}: {name} is no longer among the aggregated logs")
        with path.open("rb") as copied:
            length = read_header(copied, str(path))
            header = copied.tell()
        if length != size or path.stat().st_size < header + size - start:
            raise UnreachableError(f"{place.container_id}: {name} has other bytes than Hadoop had said")
        return _Copy(path, start, header)

    def _bounded(self, limit_s: float, ask: Callable[[], T]) -> T:
        try:
            # It is started here, with its own limit: a call that is given up would start it after the end.
            _ = self._gateway
            return call_within(limit_s, ask, thread="logs")
        except Py4JJavaError as error:
            thrown = error.java_exception
            kind, said = str(thrown.getClass().getSimpleName()), str(thrown.getMessage()).strip()
            # Hadoop tells of each folder that it looked into.
            if "does not exist" in said and "Permission denied" not in said:
                raise GoneError(f"no aggregated logs: {said.splitlines()[-1]}") from error
            raise UnreachableError(f"the aggregated logs cannot be read: {kind}: {said}") from error
        except TimeoutError as error:
            raise UnreachableError(f"the aggregated logs cannot be read: {error}") from error
        except (Py4JError, OSError) as error:
            raise UnreachableError(f"the Java process that reads aggregated logs failed: {error}") from error
