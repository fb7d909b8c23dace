"""Checkpoints as a program in a job uses them: resume from the newest, follow new ones, save by the lead.

A checkpoint that is not whole is never restored and never deleted: it is passed over with a warning.
"""

from __future__ import annotations

import logging
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfy.errors import StartError
from tfy.runtime.agreement import check_agreement
from tfy.runtime.bundle import find_flaw
from tfy.runtime.checkpoint_files import Saved, list_checkpoints, repair_state

if TYPE_CHECKING:
    import tensorflow as tf

_LOG = logging.getLogger("tfy")


def find_newest_complete(directory: str, *, without: Collection[str] = ()) -> str | None:
    """The newest complete checkpoint in `directory`, or None; the prefixes `without` do not count.

    Warns of each newer one that is not complete. Raises tf.errors.OpError where the storage fails.
    """
    for saved in list_checkpoints(directory):
        if saved.prefix in without:
            continue
        flaw = find_flaw(saved.prefix)
        if flaw is None:
            return saved.prefix
        _LOG.warning("checkpoint %s is passed over: %s", saved.prefix, flaw)
    return None


def restore_newest(checkpoint: tf.train.Checkpoint, directory: str, *, wait_s: float = 600.0) -> str | None:
    """Restores the newest checkpoint in `directory` that can be; its prefix, None where there is none.

    Goes on to the next older one where one is incomplete, damaged, or deleted while it is read; its
    values take the place of those that were already read. The first save of a run that was killed
    meanwhile is no checkpoint.

    Under MultiWorkerMirroredStrategy every worker must call it: they then compare what they restored, and
    one waits up to `wait_s` seconds for the others. Where no variable of `checkpoint` is made yet, only
    inside the strategy's scope.

    Raises StartError where there are checkpoints and none can be restored, the program's variables have
    other shapes, or the workers restored different ones; tf.errors.OpError where the storage does not
    answer.
    """
    restored = _restore_newest(checkpoint, directory)
    check_agreement(checkpoint, restored, wait_s)
    return restored


def _restore_newest(checkpoint: tf.train.Checkpoint, directory: str) -> str | None:
    failed: dict[str, str] = {}
    lost = False
    while saved := _next(directory, failed):
        flaw = find_flaw(saved.prefix)
        try:
            reason = str(flaw) if flaw else _restore(checkpoint, saved)
        except ValueError as error:
            raise StartError(
                f"checkpoint {saved.prefix} does not fit the program's variables: {error}",
                hint="with another model start over: tfy submit --fresh, or another checkpoint.dir",
            ) from error
        if reason is None:
            return saved.prefix
        _LOG.warning("checkpoint %s is passed over: %s", saved.prefix, reason)
        failed[saved.prefix] = reason
        lost = lost or saved.named or flaw is None or not flaw.unfinished
    if lost:
        listed = "; ".join(f"{prefix.rpartition('/')[2]}: {reason}" for prefix, reason in failed.items())
        raise StartError(
            f"no checkpoint in {directory} can be restored ({listed})",
            hint="move them away, or name another checkpoint.dir, to train from the start",
        )
    return None


def follow_checkpoints(
    checkpoint: tf.train.Checkpoint,
    directory: str,
    *,
    done: Callable[[], bool],
    poll_s: float = 5.0,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[str]:
    """Restores each new checkpoint in `directory` into `checkpoint` and yields its prefix, until `done()`.

    Always the newest complete one: those that were overtaken meanwhile are left out, and one that is
    deleted while it is read gives way to another. Once `done()` is true, the newest is yielded if it was
    not yet, and the iteration ends. Looks every `poll_s` seconds, by `wait`.
    """
    follower = _Follower(checkpoint, directory)
    found = False
    while True:
        # Asked before looking: what was saved before the end is then there to be seen.
        ending = done()
        prefix = follower.restore_new()
        if prefix:
            found = True
            yield prefix
        elif ending:
            break
        else:
            wait(poll_s)
    newest = next(iter(list_checkpoints(directory)), None)
    flaw = find_flaw(newest.prefix) if newest else None
    if newest and flaw:
        _LOG.warning("checkpoint %s, the last one, is passed over: %s", newest.prefix, flaw)
    if not found:
        _LOG.warning("the job is done and there was no checkpoint in %s to follow", directory)


def make_checkpoint_manager(
    checkpoint: tf.train.Checkpoint, directory: str, *, is_lead: bool, keep: int | None
) -> tf.train.CheckpointManager:
    """A tf.train.CheckpointManager of which only the lead's checkpoints stay: the newest `keep`, or all.

    Every task must save where saving takes all of them (variables that are summed over tasks when they
    are read, under MultiWorkerMirroredStrategy). Those that do not lead save into a folder on their own
    disk, which ends with the manager; their `latest_checkpoint` is the lead's until they have saved.

    Raises tf.errors.OpError where the storage fails.
    """
    import tensorflow as tf

    if is_lead:
        repair_state(directory)
        return tf.train.CheckpointManager(checkpoint, directory, max_to_keep=keep)
    folder = tempfile.TemporaryDirectory(prefix="tfy-not-lead-")
    manager = tf.train.CheckpointManager(checkpoint, folder.name, max_to_keep=1)
    # No public way: what it would have read from the state file of its folder.
    manager._latest_checkpoint = find_newest_complete(directory)
    weakref.finalize(manager, folder.cleanup)
    return manager


@dataclass(slots=True)
class _Follower:
    """What an evaluator has behind it, by `Saved.version`."""

    checkpoint: tf.train.Checkpoint
    directory: str
    seen: set[tuple[str, bytes]] = field(default_factory=set)
    damaged: set[tuple[str, bytes]] = field(default_factory=set)

    def restore_new(self) -> str | None:
        """Restores the newest checkpoint that came after those seen; all that are older are then seen."""
        while listed := self._unseen():
            saved = listed[0]
            version = saved.version()
            reason = _restore(self.checkpoint, saved)
            if reason is None:
                self.seen.update([version, *(older.version() for older in listed[1:])])
                return saved.prefix
            if find_flaw(saved.prefix) is None:
                self.damaged.add(version)
                _LOG.warning("checkpoint %s is passed over: %s", saved.prefix, reason)
        return None

    def _unseen(self) -> list[Saved]:
        """The newest complete checkpoint that came after those seen, then all older ones; else nothing."""
        listed = list_checkpoints(self.directory)
        for at, saved in enumerate(listed):
            version = saved.version()
            if version in self.seen:
                break
            if version not in self.damaged and find_flaw(saved.prefix) is None:
                return listed[at:]
        return []


def _next(directory: str, failed: Collection[str]) -> Saved | None:
    return next((saved for saved in list_checkpoints(directory) if saved.prefix not in failed), None)


def _restore(checkpoint: tf.train.Checkpoint, saved: Saved) -> str | None:
    """Restores one checkpoint; why its files do not allow it, or None where they did.

    What is not the files' fault is raised: it would fail with an older checkpoint too.
    """
    import tensorflow as tf

    not_the_files = (
        tf.errors.UnavailableError,
        tf.errors.DeadlineExceededError,
        tf.errors.PermissionDeniedError,
        tf.errors.UnauthenticatedError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.ResourceExhaustedError,
    )
    try:
        status = checkpoint.restore(saved.prefix).expect_partial()
    except not_the_files:
        raise
    # TensorFlow's reader turns a short read into an IndexError, and most else into a bare OpError.
    except (tf.errors.OpError, IndexError) as error:
        return str(error)
    try:
        status.assert_existing_objects_matched()
    except AssertionError as error:
        _LOG.warning("checkpoint %s does not hold all that the program has: %s", saved.prefix, error)
    return None
