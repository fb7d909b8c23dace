"""YARN's applications as tfy reads them, by whichever door YARN was asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Protocol

from tfy.contract import TAG_ALL, submission_of_tags
from tfy.errors import UnreachableError
from tfy.states import ApplicationState

SKEIN_TYPE = "skein"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class NoAnswerError(UnreachableError):
    """YARN did not answer: whether it did what it was asked to is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """YARN's report of one application. A job's state is that of its Skein application alone."""

    id: str
    name: str
    user: str
    queue: str
    tags: tuple[str, ...]
    state: ApplicationState
    final_status: str
    diagnostics: str
    tracking_url: str
    started: datetime | None
    finished: datetime | None
    type: str = SKEIN_TYPE

    @property
    def submission_id(self) -> str | None:
        """The job that it belongs to; None where tfy did not submit it."""
        return submission_of_tags(self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs' Skein applications to list. None: of any user, with any tag."""

    user: str | None = None
    tag: str = TAG_ALL
    ended: bool = True
    """Whether also those that have ended, as long as YARN remembers them."""

    def matches(self, application: Application) -> bool:
        """Whether this is one of them."""
        return (
            application.type == SKEIN_TYPE
            and self.user in (None, application.user)
            and self.tag in application.tags
            and (self.ended or not application.state.final)
        )


class Looks(Protocol):
    """A door to YARN for those who only look. Raises `UnreachableError`."""

    def report(self, application_id: str) -> Application | None:
        """The application, or None where YARN does not know it (any more)."""
        ...

    def list_applications(self, wanted: Wanted) -> tuple[Application, ...]:
        """Jobs' Skein applications, oldest first."""
        ...


class Kills(Protocol):
    """A door to YARN for those who end jobs. Raises `UnreachableError`."""

    def kill(self, application_id: str) -> None:
        """Kills a Skein application. One that has ended already is no error."""
        ...

    def kill_spark(self, application_id: str) -> None:
        """Kills a Spark application. One that has ended already is no error."""
        ...


class YarnDoor(Looks, Kills, Protocol):
    """All that following a job and ending it asks of YARN."""


def sort_applications(applications: list[Application]) -> tuple[Application, ...]:
    """Oldest first."""
    return tuple(sorted(applications, key=lambda found: (found.started or _EPOCH, found.id)))
