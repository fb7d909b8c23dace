"""The one error tree.

    TfyError
    ├── SpecError         exit 2   job.yaml or the command line is wrong
    ├── UnreachableError  exit 3   the cluster or the storage cannot be reached, or refuses
    ├── StartError        exit 4   the job could not start (allocation, rendezvous)
    ├── JobFailedError    exit 1   the job failed or was killed
    ├── WaitLimitError    exit 124 the job has not ended within the limit of whoever waits
    └── InternalError     exit 1   a fault of tfy's own

An error knows its exit status, the text for a person, and, where there is one, the command
or the setting that helps (`hint`). Errors are printed and turned into an exit status in one
place only: the edge of the command line (`tfy.cli.edge`).
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_JOB_FAILED = 1
EXIT_SPEC = 2
EXIT_UNREACHABLE = 3
EXIT_COULD_NOT_START = 4
EXIT_STILL_RUNNING = 5
# As the command `timeout` has it.
EXIT_WAIT_LIMIT = 124
EXIT_INTERRUPTED = 130


class TfyError(Exception):
    """Base of every error that tfy raises on purpose."""

    exit_status = EXIT_JOB_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SpecError(TfyError):
    """What the user wrote cannot be accepted: field, value, and what would be accepted."""

    exit_status = EXIT_SPEC


class UnreachableError(TfyError):
    """The cluster or the storage cannot be reached, or refuses."""

    exit_status = EXIT_UNREACHABLE


class StartError(TfyError):
    """The job could not start."""

    exit_status = EXIT_COULD_NOT_START


class JobFailedError(TfyError):
    """The job ran and failed, or was killed."""


class WaitLimitError(TfyError):
    """The job has not ended within the limit of whoever waits for it. It goes on."""

    exit_status = EXIT_WAIT_LIMIT


class InternalError(TfyError):
    """A fault of tfy's own: something that should not happen did."""
