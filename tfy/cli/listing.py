"""What `tfy ls` shows of each job: pure functions from views to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tfy.cli.story import describe_phase
from tfy.states import JobState
from tfy.units import format_duration, format_time
from tfy.yarn.follow import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job. `phase` is None once it has ended, `duration_s` counts from its submission."""

    name: str
    application_id: str
    submission_id: str
    state: JobState
    phase: str | None
    user: str
    queue: str
    started: datetime | None
    duration_s: float | None


def make_row(view: JobView, now: datetime) -> JobRow:
    """The row of a job as it is at `now`."""
    application = view.application
    ended = application.finished if view.state.final else now
    duration_s = None
    if application.started is not None and ended is not None:
        duration_s = max((ended - application.started).total_seconds(), 0.0)
    return JobRow(
        name=application.name,
        application_id=application.id,
        submission_id=view.submission_id,
        state=view.state,
        phase=None if view.state.final else describe_phase(view),
        user=application.user,
        queue=application.queue,
        started=application.started,
        duration_s=duration_s,
    )


def make_columns(rows: Sequence[JobRow]) -> list[tuple[str, list[str]]]:
    """Headings and their cells; no column that tells nothing: the same user, no phase anywhere."""
    columns = [
        ("name", [row.name for row in rows]),
        ("application", [row.application_id for row in rows]),
        ("state", [row.state.value for row in rows]),
        ("started", [format_time(row.started) if row.started else "" for row in rows]),
        ("duration", [_format_duration(row.duration_s) for row in rows]),
        ("queue", [row.queue for row in rows]),
    ]
    if len({row.user for row in rows}) > 1:
        columns.append(("user", [row.user for row in rows]))
    if any(row.phase for row in rows):
        columns.append(("phase", [row.phase or "" for row in rows]))
    return columns


def _format_duration(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(round(seconds))
