"""Which containers have a job's logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from tfy.errors import UnreachableError
from tfy.yarn.follow import JobView
from tfy.yarn.logs_model import (
    DRIVER,
    SPARK_AM,
    LogRequest,
    LogSource,
    Place,
    application_of,
    place_of,
    wants_file,
)
from tfy.yarn.rest import ApplicationLogs


class Aggregated(LogSource, Protocol):
    """The source of logs of applications that have ended."""

    def list_containers(self, application_id: str) -> Mapping[str, Mapping[str, int]]:
        """The containers that it has, with their files and sizes in bytes; `GoneError` for none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSources:
    """Where a job's logs are read, and who knows where they are."""

    live: LogSource
    aggregated: Aggregated
    ask_yarn: Callable[[str], ApplicationLogs | None]
    """YARN's word on an application's logs; raises `UnreachableError`."""
    task_names: tuple[str, ...]
    """All tasks of the job, in its order."""


class Finder:
    """Finds the containers with the logs that a request asks for."""

    def __init__(
        self, sources: LogSources, tasks: tuple[str, ...], request: LogRequest, narrate: Callable[[str], None]
    ) -> None:
        self._sources = sources
        self._tasks = tasks
        self._request = request
        self._narrate = narrate
        self._masters: dict[str, Place] = {}

    def find(self, view: JobView, *, collected: bool) -> list[Place]:
        """The containers that are known now, in the order of their tasks.

        With `collected`, also those that only the aggregated logs tell of: of an earlier start of a
        task, or where the driver could not tell.
        """
        order = {task: index for index, task in enumerate(self._tasks)}
        places = [
            Place(container_id=record.container_id, task=record.task, node_web=record.node_web)
            for record in (view.report.tasks if view.report else ())
            if record.container_id is not None and record.task in order
        ]
        if self._request.driver or self._request.system:
            places += self._find_masters(view)
        if collected:
            known = {place.container_id for place in places}
            places += [place for place in self._find_collected(view) if place.container_id not in known]
        return sorted(places, key=lambda place: (order.get(place.task, len(order)), place.container_id))

    def wanted(self, place: Place, files: Mapping[str, int]) -> list[str]:
        """Those of a container's files that are asked for."""
        return [name for name in files if wants_file(name, place, self._tasks, self._request)]

    def ask_yarn(self, application_id: str) -> ApplicationLogs | None:
        """YARN's word on an application's logs; None where it has none."""
        try:
            return self._sources.ask_yarn(application_id)
        except UnreachableError:
            return None

    def _find_masters(self, view: JobView) -> Iterator[Place]:
        """The application masters' containers: the driver is in Skein's."""
        applications = list_applications(view)
        for application_id in applications if self._request.system else applications[:1]:
            if application_id not in self._masters:
                try:
                    logs = self._sources.ask_yarn(application_id)
                except UnreachableError as error:
                    self._narrate(
                        f"where the logs of {application_id}'s master are is not known: {error.message}"
                    )
                    continue
                if logs is None or logs.master is None:
                    continue
                task = DRIVER if application_id == view.application.id else SPARK_AM
                self._masters[application_id] = Place(
                    container_id=logs.master, task=task, node_web=logs.node_web
                )
            yield self._masters[application_id]

    def _find_collected(self, view: JobView) -> Iterator[Place]:
        for application_id in list_applications(view):
            try:
                listed = self._sources.aggregated.list_containers(application_id)
            except UnreachableError:
                # Not yet; whoever waits for a container of it says so.
                continue
            for container_id, files in listed.items():
                place = place_of(container_id, files)
                if self.wanted(place, files):
                    yield place


def list_applications(view: JobView) -> tuple[str, ...]:
    """Skein's application of a job, then Spark's where it is known."""
    report = view.report
    found = [view.application.id]
    if report is not None and report.spark_application_id is not None:
        found.append(report.spark_application_id)
    for record in report.tasks if report is not None else ():
        if record.container_id is not None:
            found.append(application_of(record.container_id))
    return tuple(dict.fromkeys(found))
