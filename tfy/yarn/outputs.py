"""Where a job will write: whether it may, and whether another one does already. Asked before it is sent."""

from __future__ import annotations

from collections.abc import Callable

from tfy.contract import from_json
from tfy.errors import InternalError, SpecError, UnreachableError
from tfy.paths import JobDir
from tfy.plan_model import Plan
from tfy.storage.hdfs import DeniedError, Storage
from tfy.yarn.application import Application, Looks, Wanted


def check_writable(plan: Plan, default: Storage) -> None:
    """Refuses folders for checkpoints and exports that the user may not write to.

    A first checkpoint may come after hours, an export after all of the training. The folders are made, and
    in them, for a moment, one more. `default` is the default file system.
    """
    for field, folder in (("checkpoint.dir", plan.checkpoint_dir), ("export.dir", plan.export_dir)):
        if folder is None:
            continue
        uri = default.resolve(folder)
        system = default.file_system_of(uri)
        probe = f"{uri}/.tfy-{plan.submission_id}"
        try:
            system.make_folder(probe)
        except DeniedError as error:
            raise SpecError(f"{field}: {plan.user} may not write to {folder!r}: {error.message}") from error
        system.delete(probe)


def check_rivals(plan: Plan, yarn: Looks, default: Storage, narrate: Callable[[str], None]) -> None:
    """Says which running job has the same checkpoint.dir; refuses a fresh start, which would move it away.

    Jobs of other users keep their directories to themselves, and are not seen.
    """
    if plan.checkpoint_dir is None:
        return
    rivals = [
        application
        for application in yarn.list_applications(Wanted(ended=False))
        if _checkpoint_dir_of(application, default) == default.resolve(plan.checkpoint_dir)
    ]
    if not rivals:
        return
    named = ", ".join(f"{application.name} ({application.id})" for application in rivals)
    if plan.fresh:
        raise SpecError(
            f"--fresh would move {plan.checkpoint_dir} away from a job that runs: {named}",
            hint=f"end it first (tfy kill {rivals[0].id}), or choose another checkpoint.dir",
        )
    narrate(f"warning: {plan.checkpoint_dir} is checkpoint.dir of {named}, too: they overwrite each other's")


def _checkpoint_dir_of(application: Application, default: Storage) -> str | None:
    """A job's folder for checkpoints, resolved; None where it has none, or its plan cannot be read."""
    if application.submission_id is None:
        return None
    job_dir = JobDir.of(default.default_fs, application.user, application.submission_id)
    try:
        folder = from_json(default.read(job_dir.plan), Plan).checkpoint_dir
    except (UnreachableError, InternalError):
        return None
    return None if folder is None else default.resolve(folder)
