"""The states of a job, of a task and of an application, and the tables between them."""

from __future__ import annotations

from enum import Enum


class JobState(str, Enum):
    """Where a job stands. The last three are final."""

    SUBMITTED = "submitted"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def final(self) -> bool:
        """Whether nothing more can happen to the job."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.KILLED)


class TaskState(str, Enum):
    """Where a task stands. The last four are final."""

    WAITING = "waiting"
    """Its container has not been asked for yet."""
    REQUESTED = "requested"
    """Asked of YARN, not granted yet."""
    ALLOCATED = "allocated"
    """YARN granted the container; the node has not spoken yet."""
    REGISTERED = "registered"
    """The node runs and has told its address."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """Its container ended without a word from its node."""
    STOPPED = "stopped"
    """Stopped by the driver, which is no fault."""

    @property
    def final(self) -> bool:
        """Whether the task has ended."""
        return self in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.LOST, TaskState.STOPPED)


class ApplicationState(str, Enum):
    """YARN's application states; UNKNOWN for one that a newer YARN may have."""

    NEW = "new"
    NEW_SAVING = "new_saving"
    SUBMITTED = "submitted"
    ACCEPTED = "accepted"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"

    @property
    def final(self) -> bool:
        """Whether the application has ended."""
        return self in (ApplicationState.FINISHED, ApplicationState.FAILED, ApplicationState.KILLED)


def parse_application_state(text: str) -> ApplicationState:
    """YARN's word for an application's state, in any case, as ours."""
    try:
        return ApplicationState(text.lower())
    except ValueError:
        return ApplicationState.UNKNOWN


# Only the Skein application's status counts: final status first, then state.
_BY_FINAL_STATUS = {
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "killed": JobState.KILLED,
    "ended": JobState.FAILED,
}
_BY_STATE = {
    ApplicationState.RUNNING: JobState.STARTING,
    ApplicationState.FINISHED: JobState.FAILED,
    ApplicationState.FAILED: JobState.FAILED,
    ApplicationState.KILLED: JobState.KILLED,
}


def job_state_of(state: ApplicationState, final_status: str) -> JobState:
    """The job's state as far as YARN alone can tell it.

    While the application runs, only the driver knows more than `starting`.
    """
    if state.final:
        return _BY_FINAL_STATUS.get(final_status.lower(), _BY_STATE[state])
    return _BY_STATE.get(state, JobState.SUBMITTED)
