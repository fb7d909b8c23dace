"""The lines of a job's logs: live while its containers run, from the aggregated logs afterwards.

Every container is read from whichever source has it at the time, and each of its files goes on at the byte
where the reading had stopped. So a line comes once and in order also where the source changes on
the way: a NodeManager forgets an application as soon as its logs are aggregated, and until then
they are nowhere else.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from tfy.errors import UnreachableError
from tfy.states import JobState
from tfy.yarn.follow import JobView
from tfy.yarn.logs_look import Lookout, try_look
from tfy.yarn.logs_model import (
    GoneError,
    Listing,
    LogLine,
    LogRequest,
    LogSource,
    Place,
    select_tasks,
    task_of_program_log,
)
from tfy.yarn.logs_places import Finder, LogSources, list_applications
from tfy.yarn.logs_stream import Stream

POLL_S = 0.5
# YARN collects the logs within seconds; a busy node's may take longer.
AGGREGATION_LIMIT_S = 120.0
# A ResourceManager that restarts is back within this time.
_UNREACHABLE_LIMIT_S = 60.0
# A host that answers later than this holds the others' lines up no longer.
_PATIENCE_S = 1.0
# More than all limits of a NodeManager's web service together: who looks once hears everybody.
_LOOK_LIMIT_S = 120.0
# After this long in silence the user is told what is being waited for.
_SAY_AFTER_S = 3.0
_PENDING = ("", "NOT_START", "RUNNING", "RUNNING_WITH_FAILURE")


def iter_lines(
    look: Callable[[], JobView],
    sources: LogSources,
    request: LogRequest,
    narrate: Callable[[str], None],
    *,
    draw: Callable[[str], None] | None = None,
    limit_s: float = AGGREGATION_LIMIT_S,
) -> Iterator[LogLine]:
    """The lines that `request` asks for, merged by time, those of one task always in order.

    `look` gives the job as it stands, `narrate` hears what is waited for, `draw` the progress bars that the
    programs are drawing, and `limit_s` is how long, in seconds after the job's end, its logs are
    waited for. Raises `SpecError` for a task that the job does
    not have and `UnreachableError`, after all that could be read, where something could not.
    """
    reader = _Reader(look, sources, request, narrate, limit_s)
    for line in reader.run():
        if line is not None:
            yield line
        elif draw is not None:
            draw(reader.drawn)


class _Container:
    """One container whose logs are wanted, and how far they are read."""

    def __init__(self, place: Place, *, tail: int | None) -> None:
        self.place = place
        self.tail = tail
        self.streams: dict[str, Stream] = {}
        self.done = False
        self.trouble: UnreachableError | None = None

    def take(self, answer: Listing | UnreachableError, *, last_resort: bool) -> Listing | None:
        """The listing, where it can be gone on with; else the trouble is known.

        An absence hides no cause; of two of a kind the word of the source that is the last resort is told.
        """
        if isinstance(answer, Listing):
            for stream in self.streams.values():
                if answer.sizes.get(stream.name, 0) < stream.position:
                    # Its files are being removed: what it lists is not what there was.
                    answer = GoneError(f"{stream.name} is no longer there")
                    break
            else:
                self.trouble = None
                return answer
        was_absent, absent = isinstance(self.trouble, GoneError), isinstance(answer, GoneError)
        if self.trouble is None or (was_absent and not absent) or (was_absent == absent and last_resort):
            self.trouble = answer
        return None


class _Reader:
    """Goes round the job's containers until all is read that was asked for."""

    def __init__(
        self,
        look: Callable[[], JobView],
        sources: LogSources,
        request: LogRequest,
        narrate: Callable[[str], None],
        limit_s: float,
    ) -> None:
        self._look_at_job = look
        self._sources = sources
        self._view = look()
        self._limit_s = limit_s
        self._request = request
        self._narrate = narrate
        self._tasks = select_tasks(sources.task_names, request.tasks)
        # One task's containers ran one after another: to follow each other they need no merging.
        self._one = len(self._tasks) == 1 and not (request.driver or request.system)
        self._lookout = Lookout(sources.live)
        self._finder = Finder(sources, self._tasks, request, self._tell_once)
        self._containers: dict[str, _Container] = {}
        # Of a job that has ended before, the NodeManagers know nothing but for the first seconds.
        self._ended_before = self._view.state.final
        self._collected: set[str] = set()
        self._told: set[str] = set()

    @property
    def drawn(self) -> str:
        """The progress bars of all tasks."""
        states = (stream.state for container in self._open() for stream in container.streams.values())
        return "  ".join(filter(None, states))

    def run(self) -> Iterator[LogLine | None]:
        """The lines, and None after each round."""
        began = lost_since = time.monotonic()
        ended_at: float | None = None
        first = True
        while True:
            if self._view.state.final:
                ended_at = time.monotonic() if ended_at is None else ended_at
            self._find_containers(first=first)
            yield from self._read_all()
            yield None
            first = False
            if self._view.state is JobState.SUBMITTED or time.monotonic() - began > _SAY_AFTER_S:
                self._say_what_is_waited_for()
            if self._is_over(ended_at):
                break
            time.sleep(POLL_S)
            try:
                self._view = self._look_at_job()
                lost_since = time.monotonic()
            except UnreachableError:
                # The logs go on without it.
                if time.monotonic() - lost_since > _UNREACHABLE_LIMIT_S:
                    raise
        for container in self._open():
            # Of what could not be read to its end.
            for stream in container.streams.values():
                yield from stream.flush(None)
        self._complain()

    def _find_containers(self, *, first: bool) -> None:
        tail = self._request.tail if first or self._ended_before else None
        for place in self._finder.find(self._view, collected=self._ended_before):
            if place.container_id not in self._containers:
                self._containers[place.container_id] = _Container(place, tail=tail)

    # --- reading ------------------------------------------------------------------------------
    def _read_all(self) -> Iterator[LogLine]:
        """What is new everywhere, merged by time.

        Merging needs the next line of every log: all aggregated ones lie in copies side by side meanwhile.
        Those of one task alone are read, and copied, one after another.
        """
        ready = self._look()
        parts = [
            self._read(container, name, source, listing)
            for container, source, listing in ready
            for name in self._finder.wanted(container.place, listing.sizes)
        ]
        if self._one:
            yield from chain.from_iterable(parts)
        else:
            yield from heapq.merge(*parts, key=lambda line: line.time or 0.0)
        for container, _, listing in ready:
            container.done = listing.final and container.trouble is None

    def _look(self) -> list[tuple[_Container, LogSource, Listing]]:
        """The containers that can be read now, with the source of each and what it has of it."""
        live, aggregated = self._sources.live, self._sources.aggregated
        containers = missing = self._open()
        found: dict[str, tuple[LogSource, Listing]] = {}
        for container in containers:
            container.trouble = None
        for source in (aggregated, live) if self._ended_before else (live, aggregated):
            answers = self._ask(source, [container.place for container in missing])
            for container in missing:
                listing = container.take(
                    answers[container.place.container_id], last_resort=source is aggregated
                )
                if listing is not None:
                    found[container.place.container_id] = source, listing
            # A NodeManager of a running job that is busy or away has them still.
            missing = [
                container
                for container in missing
                if isinstance(container.trouble, GoneError)
                or (container.trouble is not None and self._view.state.final)
            ]
        ids = [(container, container.place.container_id) for container in containers]
        return [(container, *found[container_id]) for container, container_id in ids if container_id in found]

    def _ask(self, source: LogSource, places: list[Place]) -> Mapping[str, Listing | UnreachableError]:
        if source is self._sources.live:
            looks_once = not self._request.follow and not self._view.state.final
            return self._lookout.look(places, patience_s=_LOOK_LIMIT_S if looks_once else _PATIENCE_S)
        return {place.container_id: try_look(source, place) for place in places}

    def _read(
        self, container: _Container, name: str, source: LogSource, listing: Listing
    ) -> Iterator[LogLine]:
        """The lines of one file that are new, up to what was listed of it."""
        now = None if listing.final else time.time()
        # Nothing more will come, or nobody will wait for it.
        ends = listing.final or not (self._request.follow or self._view.state.final)
        stream = container.streams.get(name)
        is_new = stream is None
        if stream is None:
            fold = not self._request.system
            stream = container.streams[name] = Stream(container.place, name, fold=fold)
        try:
            stream.learn_times(source, listing)
            if is_new and container.tail is not None:
                yield from stream.read_tail(source, listing, container.tail, now, ends=ends)
            else:
                yield from stream.read_to(source, listing.sizes[name], now)
                if ends:
                    yield from stream.flush(now)
        except UnreachableError as error:
            # It goes on at its position once there is a source again; an end that was cut off starts anew.
            container.trouble = error
            if is_new and container.tail is not None:
                del container.streams[name]

    def _open(self) -> list[_Container]:
        return [container for container in self._containers.values() if not container.done]

    # --- the end ------------------------------------------------------------------------------
    def _is_over(self, ended_at: float | None) -> bool:
        if ended_at is None:
            return not self._request.follow
        if time.monotonic() - ended_at > self._limit_s:
            return True
        waited_for = {container.place.application_id for container in self._open()}
        if self._view.report is None and self._view.trouble is not None:
            # The driver's word on the containers cannot be read: what YARN collects will tell of them.
            waited_for |= set(list_applications(self._view))
        collected = [self._is_collected(application_id) for application_id in waited_for]
        return all(collected)

    def _is_collected(self, application_id: str) -> bool:
        """Whether nothing more will come of an application, which was looked at since that is known."""
        if application_id in self._collected:
            return True
        logs = self._finder.ask_yarn(application_id)
        if logs is not None and logs.aggregation not in _PENDING:
            # Once more: it may have come between the last look and YARN's word.
            self._collected.add(application_id)
        return False

    def _say_what_is_waited_for(self) -> None:
        view = self._view
        if view.state is JobState.SUBMITTED:
            self._tell_once(
                f"{view.application.name} waits for YARN to start it in queue {view.application.queue}; "
                "its logs begin then"
            )
        elif not self._containers and view.report is not None and not view.state.final:
            self._tell_once(f"{view.application.name}: {view.report.phase}; no program has started yet")
        for container in self._open():
            if container.trouble is not None:
                where = "the aggregated logs" if view.state.final else f"the log of {container.place.task}"
                self._tell_once(f"waiting for {where}: {container.trouble.message}")

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._narrate(text)

    def _complain(self) -> None:
        """Raises where something could not be read, and tells where there was nothing to read."""
        ended = self._view.state.final
        missing = [container for container in self._open() if ended or container.trouble is not None]
        if missing:
            raise self._explain(missing)
        without = [name for name in self._tasks if not self._has_log(name)]
        if without:
            self._narrate(
                f"no log{'' if ended else ' yet'}, since no program has started: {', '.join(without)}"
            )

    def _has_log(self, task: str) -> bool:
        names = {name for container in self._containers.values() for name in container.streams}
        return task in map(task_of_program_log, names)

    def _explain(self, missing: list[_Container]) -> UnreachableError:
        who = ", ".join(f"{container.place.task} ({container.place.container_id})" for container in missing)
        trouble = missing[0].trouble
        reason = trouble.message if trouble is not None else "its container still runs"
        logs = self._finder.ask_yarn(missing[0].place.application_id) if self._view.state.final else None
        if logs is not None and logs.aggregation == "DISABLED":
            return UnreachableError(
                f"the logs of {who} went with the job: this cluster does not keep them",
                hint="set yarn.log-aggregation-enable to true in the yarn-site.xml of all NodeManagers",
            )
        return UnreachableError(f"the logs of {who} cannot be read: {reason}")
