"""The checkpoints in a directory, in the order in which they were saved, and their state file.

TensorFlow keeps that order in a text file named `checkpoint`, which may be lost, cut short, older
than the newest checkpoint, or brought from another folder. What lies in the directory counts;
the state file helps to order it. All goes through tf.io.gfile, so hdfs:// works too.
"""

from __future__ import annotations

import hashlib
import logging
import posixpath
import re
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tfy.runtime.bundle import find_flaw

STATE_FILE = "checkpoint"
_WRITING = ".writing-"
_FILE = re.compile(r"(?P<name>.+)\.(?P<kind>index|data-\d{5}-of-\d{5})$")
_LOG = logging.getLogger("tfy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One checkpoint of which at least one file exists."""

    prefix: str
    """What tf.train.Checkpoint.restore takes."""
    has_index: bool
    named: bool
    """The state file names it, or cannot be read: so saving it had ended, as far as is known."""

    @property
    def name(self) -> str:
        """The prefix without its directory."""
        return self.prefix.rpartition("/")[2]

    def version(self) -> tuple[str, bytes]:
        """Differs from that of a checkpoint which was saved anew under the same name.

        By what the index holds (a checksum of each tensor): on HDFS a file's time changes when it is
        closed, after it could be read, and TensorFlow tells a local file's in whole seconds.
        """
        return self.prefix, hashlib.sha256(_read(f"{self.prefix}.index") or b"").digest()

    def written_ns(self) -> int:
        """When the index was written, in nanoseconds; 0 where there is none."""
        return _mtime_ns(f"{self.prefix}.index")


@dataclass(frozen=True, slots=True)
class _State:
    """What the state file says: TensorFlow's record of it, or None where it cannot be read."""

    record: Any

    @property
    def names(self) -> tuple[str, ...]:
        """The checkpoints' names without directories, from oldest to newest."""
        if self.record is None:
            return ()
        paths = [*self.record.all_model_checkpoint_paths, self.record.model_checkpoint_path]
        names = [path.rstrip("/").rpartition("/")[2] for path in paths]
        return tuple(name for at, name in enumerate(names) if name not in names[at + 1 :])

    def leads_to(self, directory: str, saved: Saved) -> bool:
        """Whether TensorFlow finds `saved` by it. It takes hdfs://… for a relative path."""
        if self.record is None:
            return False
        path = posixpath.join(directory, self.record.model_checkpoint_path)
        return posixpath.normpath(path) == posixpath.normpath(saved.prefix)


def list_checkpoints(directory: str) -> list[Saved]:
    """The checkpoints in `directory`, newest first; empty where it does not exist.

    Only those named like the ones in the state file, numbers aside: where that names `ckpt-7`,
    `ckpt-8` is one of them and `best` is not. Raises tf.errors.OpError where the storage fails.
    """
    return _list(directory, _read_state(directory))


def repair_state(directory: str) -> str | None:
    """Makes TensorFlow find the newest complete checkpoint in `directory`; says what it changed, or None.

    For programs that ask tf.train.latest_checkpoint or tf.train.CheckpointManager. Rewrites the state
    file (written, then renamed) where it is lost or unreadable, or leads to a checkpoint that is
    incomplete, gone, elsewhere or not the newest. No other file is touched. Where nothing here is
    complete, it stays as it is: a loss must not look like a beginning.

    Reading meanwhile is safe; saving into `directory` meanwhile is not. Raises tf.errors.OpError.
    """
    state = _read_state(directory)
    saved = _list(directory, state)
    at = next((at for at, each in enumerate(saved) if find_flaw(each.prefix) is None), None)
    if at is None or (state and state.leads_to(directory, saved[at])):
        return None
    if state is None and not _is_numbered(saved[at].name):
        return None  # saved by hand under a name of its own: nothing was lost
    # Only what the state file names, and the newest: a manager deletes by this list.
    named = state.names if state else ()
    older = [each.name for each in saved[:at:-1] if each.name in named and find_flaw(each.prefix) is None]
    _write_state(directory, state, [*older, saved[at].name])
    what = "was missing" if state is None else "could not be read"
    if named:
        what = f"led to {named[-1]}"
    text = f"{directory}/{STATE_FILE} {what}; it now leads to {saved[at].name}, the newest complete one"
    _LOG.warning(text)
    return text


def _list(directory: str, state: _State | None) -> list[Saved]:
    import tensorflow as tf

    try:
        files = [_FILE.match(entry) for entry in tf.io.gfile.listdir(directory)]
    except tf.errors.NotFoundError:
        return []
    names = {match["name"] for match in files if match}
    indexed = {match["name"] for match in files if match and match["kind"] == "index"}
    listed = state.names if state else ()
    found = [
        Saved(
            prefix=posixpath.join(directory, name),
            has_index=name in indexed,
            named=state is not None and (state.record is None or name in listed),
        )
        for name in names
    ]
    return _newest_first(_of_one_kind(found, listed), listed)


def _of_one_kind(found: list[Saved], listed: Collection[str]) -> list[Saved]:
    """Those that are successors of one another: named alike but for the numbers."""
    if listed:
        kinds = {_kind(name) for name in listed}
        return [saved for saved in found if _kind(saved.name) in kinds]
    # Without a state file: as TensorFlow's managers name them, if there are such.
    found = [saved for saved in found if _is_numbered(saved.name)] or found
    last_of = {_kind(saved.name): saved for saved in sorted(found, key=_numbers)}
    if len(last_of) < 2:
        return found
    kind = max(last_of, key=lambda kind: last_of[kind].written_ns())
    return [saved for saved in found if _kind(saved.name) == kind]


def _newest_first(found: Iterable[Saved], listed: tuple[str, ...]) -> list[Saved]:
    by_name = {saved.name: saved for saved in sorted(found, key=_numbers)}
    known = [by_name.pop(name) for name in listed if name in by_name]
    rest = list(by_name.values())
    later = [saved for saved in rest if known and _is_later(saved, known[-1])]
    return [*(saved for saved in rest if saved not in later), *known, *later][::-1]


def _is_later(saved: Saved, last: Saved) -> bool:
    """Whether a checkpoint that the state file does not name came after the last that it names.

    A higher number alone may be left over from an earlier run that had come further.
    """
    if _kind(saved.name) != _kind(last.name) or _numbers(saved) <= _numbers(last):
        return False
    return not saved.has_index or saved.written_ns() >= last.written_ns()


def _kind(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _numbers(saved: Saved) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", saved.name))


def _is_numbered(name: str) -> bool:
    return _kind(name).endswith("-#")


def _read(path: str) -> bytes | None:
    """A file's content, or None where there is none."""
    import tensorflow as tf

    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            return bytes(file.read())
    except tf.errors.NotFoundError:
        return None


def _mtime_ns(path: str) -> int:
    """When a file was last written, in nanoseconds; 0 where it is gone."""
    import tensorflow as tf

    try:
        return int(tf.io.gfile.stat(path).mtime_nsec)
    except tf.errors.NotFoundError:
        return 0


def _read_state(directory: str) -> _State | None:
    """The state file, or None where there is none."""
    from google.protobuf import text_format  # type: ignore[import-untyped]
    from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState

    text = _read(posixpath.join(directory, STATE_FILE))
    if text is None:
        return None
    try:
        record = text_format.Parse(text, CheckpointState())
    except (text_format.ParseError, UnicodeDecodeError):
        return _State(None)
    return _State(record if record.model_checkpoint_path else None)


def _write_state(directory: str, state: _State | None, names: list[str]) -> None:
    """Replaces the state file; what CheckpointManager wrote down for each name is kept."""
    import tensorflow as tf
    from google.protobuf import text_format
    from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState

    record = CheckpointState(model_checkpoint_path=names[-1], all_model_checkpoint_paths=names)
    old = state.record if state else None
    times: dict[str, float] = {}
    if old:
        record.last_preserved_timestamp = old.last_preserved_timestamp
        known = zip(old.all_model_checkpoint_paths, old.all_model_checkpoint_timestamps, strict=False)
        times = {path.rpartition("/")[2]: time for path, time in known}
    if times or not old:  # a manager deletes nothing of a list without times, so none are made up
        mtimes = {name: _mtime_ns(posixpath.join(directory, f"{name}.index")) / 1e9 for name in names}
        record.all_model_checkpoint_timestamps.extend(times.get(name, mtimes[name]) for name in names)
    path = posixpath.join(directory, STATE_FILE)
    draft = f"{path}{_WRITING}{uuid.uuid4()}"
    with tf.io.gfile.GFile(draft, "w") as file:
        file.write(text_format.MessageToString(record))
    tf.io.gfile.rename(draft, path, overwrite=True)
