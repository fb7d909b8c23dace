"""Watching a job from the terminal to its end."""

from __future__ import annotations

import time

from tfy.cli import render, story
from tfy.errors import EXIT_INTERRUPTED
from tfy.yarn.follow import Jobs, JobView, follow_job

# A line of progress on a terminal that cannot redraw, at most so often.
_PROGRESS_EVERY_S = 5.0


class _Screen:
    """Shows each view as lines of what is new; progress as a line that is redrawn, or now and then."""

    def __init__(self, live: render.LiveLine) -> None:
        self._live = live
        self._last: JobView | None = None
        self._progress = ""
        self._progress_shown = time.monotonic()

    def show(self, view: JobView) -> None:
        for line in story.tell_changes(self._last, view):
            render.narrate(line)
        self._last = view
        progress = story.describe_progress(view.report)
        self._live.update(progress or story.describe_phase(view))
        if self._live.redraws or not progress or progress == self._progress:
            return
        if time.monotonic() - self._progress_shown >= _PROGRESS_EVERY_S or view.state.final:
            render.narrate(progress)
            self._progress, self._progress_shown = progress, time.monotonic()


def watch_job(jobs: Jobs, application_id: str, *, as_json: bool) -> int:
    """Follows the job to its end; the exit status that its end means."""
    try:
        with render.LiveLine() as live:
            view = follow_job(jobs, application_id, _Screen(live).show)
    except KeyboardInterrupt:
        return _leave(application_id, "following")
    render.show_end(view, as_json=as_json)
    return view.exit_status


def wait_for_job(jobs: Jobs, application_id: str, limit_s: float | None, *, as_json: bool) -> int:
    """Says nothing until the job has ended, then one line; the exit status that its end means.

    Raises `WaitLimitError` where `limit_s` seconds are over first.
    """
    try:
        view = follow_job(jobs, application_id, limit_s=limit_s)
    except KeyboardInterrupt:
        return _leave(application_id, "waiting")
    render.show_end_line(view, as_json=as_json)
    return view.exit_status


def _leave(application_id: str, doing: str) -> int:
    render.narrate(
        f"\nno longer {doing}; the job goes on. `tfy status {application_id} --follow` follows it "
        f"again, `tfy kill {application_id}` ends it"
    )
    return EXIT_INTERRUPTED
