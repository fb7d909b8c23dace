"""Which job a user means: by name, by an application id, or by a submission id. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from tfy.errors import SpecError
from tfy.units import format_time
from tfy.yarn.application import Application

_APPLICATION_ID = re.compile(r"application_\d+_\d+", re.ASCII)
_UUID_LENGTH = 36
# Fewer characters of an id are sooner a name, or a slip.
_SUBMISSION_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]{7,35}")


def pick_job(target: str, jobs: Sequence[Application]) -> Application | None:
    """The one of `jobs` (oldest first) that `target` means by name or by submission id; None where none.

    Of a name: the one that has not ended, or else the newest. Raises `SpecError` with a list where
    several may be meant.
    """
    named = [job for job in jobs if job.name == target]
    if named:
        running = [job for job in named if not job.state.final]
        if len(running) > 1:
            raise _ambiguous(f"{len(running)} jobs of the name {target} are running", running)
        return (running or named)[-1]
    if not _SUBMISSION_PREFIX.fullmatch(target.lower()):
        return None
    begun = [job for job in jobs if (job.submission_id or "").startswith(target.lower())]
    if len({job.submission_id for job in begun}) > 1:
        raise _ambiguous(f"several submission ids begin with {target}", begun)
    return begun[-1] if begun else None


def is_application_id(target: str) -> bool:
    """Whether this is an application id. (No job's name begins as one does.)"""
    return _APPLICATION_ID.fullmatch(target) is not None


def is_submission_id(target: str) -> bool:
    """Whether this is a whole submission id."""
    return len(target) == _UUID_LENGTH and _SUBMISSION_PREFIX.fullmatch(target.lower()) is not None


def make_unknown(target: str, user: str, jobs: Sequence[Application]) -> SpecError:
    """The refusal of a target that none of `user`'s jobs is."""
    near = difflib.get_close_matches(target, {job.name for job in jobs}, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return SpecError(
        f"{target}: YARN knows no job of this name or id of {user}'s",
        hint=f"{hint}`tfy ls --all` lists the jobs that it remembers",
    )


def _ambiguous(why: str, jobs: Sequence[Application]) -> SpecError:
    lines = [f"{why}; say which by an id:"]
    lines += [
        f"  {job.id}  {job.submission_id}  {job.state.value}  "
        f"since {format_time(job.started) if job.started else 'just now'}"
        for job in jobs
    ]
    return SpecError("\n".join(lines))
