"""A fresh start: what earlier jobs left in the checkpoint folder is put aside, and nothing is lost."""

from __future__ import annotations

from tfy.paths import aside_of
from tfy.plan_model import Plan
from tfy.storage.hdfs import NotFoundError, Storage


def move_aside(plan: Plan, default: Storage) -> str | None:
    """Renames the checkpoint folder where the plan asks for a fresh start; the new name, None without.

    Called once, before the first task starts. `default` is the default file system. Raises
    `UnreachableError` where the folder cannot be renamed: the job must not resume then.
    """
    if not plan.fresh or plan.checkpoint_dir is None:
        return None
    uri = default.resolve(plan.checkpoint_dir)
    target = aside_of(uri, plan.submission_id)
    try:
        default.file_system_of(uri).move(uri, target)
    except NotFoundError:
        return None
    return target
