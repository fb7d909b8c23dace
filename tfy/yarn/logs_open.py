"""One command's hold on a job's logs: the cluster's NodeManagers, its aggregated logs, its YARN."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tfy.contract import task_name
from tfy.errors import UnreachableError
from tfy.yarn.follow import JobView
from tfy.yarn.logs import iter_lines
from tfy.yarn.logs_live import NodeManagers
from tfy.yarn.logs_model import Listing, LogLine, LogRequest, Place
from tfy.yarn.logs_places import Aggregated, LogSources
from tfy.yarn.rest import ApplicationLogs, RmRest, find_addresses
from tfy.yarn.session import Cluster, find_cluster, open_jobs

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


class _TaskType(msgspec.Struct, frozen=True):
    type: str
    instances: int


class _Tasks(msgspec.Struct, frozen=True):
    """Of a plan, whichever tfy wrote it, the tasks."""

    tasks: list[_TaskType]


def read_lines(
    environ: Mapping[str, str],
    job: str,
    request: LogRequest,
    narrate: Callable[[str], None],
    begin: Callable[[tuple[str, ...]], None] | None = None,
    draw: Callable[[str], None] | None = None,
) -> Iterator[LogLine]:
    """The lines of the logs of `job`, by whatever names it (see `Jobs.find`); as `iter_lines`.

    `begin` hears, before any line, the names of all tasks of the job.
    """
    with open_jobs(environ) as jobs:
        application_id = jobs.find(job).id
        with open_sources(environ, jobs.view(application_id)) as sources:
            if begin is not None:
                begin(sources.task_names)
            yield from iter_lines(lambda: jobs.view(application_id), sources, request, narrate, draw=draw)


@contextmanager
def open_sources(environ: Mapping[str, str], view: JobView) -> Iterator[LogSources]:
    """Where the logs of one job are read; what had to be started ends with the block."""
    cluster = find_cluster(environ)
    properties = cluster.hadoop.properties
    secure = properties.get("yarn.http.policy", "").upper() == "HTTPS_ONLY"
    addresses = find_addresses(properties)
    rest = RmRest(addresses, cluster.user) if addresses else None
    with ExitStack() as stack:
        yield LogSources(
            live=NodeManagers("https" if secure else "http", cluster.user),
            aggregated=_LateAggregated(
                lambda: _open_aggregated(stack, cluster, environ, view.application.user)
            ),
            ask_yarn=lambda application_id: _ask(rest, application_id),
            task_names=load_task_names(cluster, view),
        )


def load_task_names(cluster: Cluster, view: JobView) -> tuple[str, ...]:
    """All tasks of a job, in its order, from the plan in its directory."""
    data = cluster.storage.read(view.job_dir.plan)
    try:
        plan = msgspec.json.decode(data, type=_Tasks)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"{view.job_dir.plan}: not a plan of tfy's: {error}") from error
    return tuple(task_name(task.type, index) for task in plan.tasks for index in range(task.instances))


class _LateAggregated:
    """The aggregated logs, whose Java process is started only once they are asked for."""

    def __init__(self, start: Callable[[], Aggregated]) -> None:
        self._started = cache(start)

    def list_containers(self, application_id: str) -> Mapping[str, Mapping[str, int]]:
        return self._started().list_containers(application_id)

    def look(self, place: Place) -> Listing:
        return self._started().look(place)

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        return self._started().read(place, name, start, size)


def _open_aggregated(
    stack: ExitStack, cluster: Cluster, environ: Mapping[str, str], owner: str
) -> Aggregated:
    # Py4J is loaded only where logs are not live any more.
    from tfy.yarn.logs_aggregated import AggregatedLogs
    from tfy.yarn.logs_java import open_gateway

    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tfy-logs-")))

    def start() -> JavaGateway:
        return stack.enter_context(open_gateway(cluster.hadoop, environ, scratch / "java.log"))

    return AggregatedLogs(start, owner, scratch)


def _ask(rest: RmRest | None, application_id: str) -> ApplicationLogs | None:
    if rest is None:
        raise UnreachableError("the configuration names no ResourceManager's web address")
    return rest.report_logs(application_id)
