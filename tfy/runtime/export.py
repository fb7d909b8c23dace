"""Exporting a model: a SavedModel under the next version number, whole or not at all.

Versions are folders 1, 2, 3…, as TensorFlow Serving wants them. Each is written under another name
beside them and then renamed, so who reads the directory never sees half a model.
"""

from __future__ import annotations

import logging
import posixpath
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITING = ".writing-"
_REMOVING = ".removing-"
_LEFT_OVER_AFTER_S = 24 * 3600.0
_RENAMES = 100
_LOG = logging.getLogger("tfy")


def export_model(
    model: Any,
    directory: str,
    *,
    is_lead: bool,
    signatures: Any = None,
    keep: int | None = None,
) -> str | None:
    """Saves `model` as a SavedModel; the path of the new version, None where `is_lead` is false.

    `model` is a tf.Module, a Keras model or anything else that tf.saved_model.save takes, and so are
    `signatures`. All tasks call this: where a model has variables that are read by all tasks
    together (a Keras BatchNormalization under MultiWorkerMirroredStrategy), those that do not lead save
    with the lead, into a folder that is thrown away. Of the versions the newest `keep` stay, or all.

    Raises tf.errors.OpError where the storage fails, ValueError where the model cannot be saved.
    """
    import tensorflow as tf

    if keep is not None and keep < 1:
        raise ValueError(f"keep is {keep}: at least the version that is written stays")
    if not is_lead:
        if _takes_all_tasks(model):
            with tempfile.TemporaryDirectory(prefix="tfy-not-lead-") as folder:
                _save(model, folder, signatures)
        return None
    tf.io.gfile.makedirs(directory)
    _remove_left_over(directory, time.time())
    draft = posixpath.join(directory, f"{_WRITING}{uuid.uuid4()}")
    try:
        _save(model, draft, signatures)
        _warn_without_signatures(draft)
        path = _rename_to_next(draft, directory)
    except BaseException:
        _remove(draft)
        raise
    if keep is not None:
        _remove_old(directory, keep)
    return path


def _takes_all_tasks(model: Any) -> bool:
    """Whether saving reads a variable whose value is put together from all tasks."""
    import tensorflow as tf

    on_read = tf.VariableSynchronization.ON_READ
    parts = tf.train.TrackableView(model).descendants()
    return any(getattr(part, "synchronization", None) is on_read for part in parts)


def _save(model: Any, path: str, signatures: Any) -> None:
    import tensorflow as tf

    # Keras 3 models make their serving signature in their own export only; Keras 2's do when saved.
    if signatures is None and _is_keras_3(model):
        model.export(path, verbose=False)
    else:
        tf.saved_model.save(model, path, signatures=signatures)


def _is_keras_3(model: Any) -> bool:
    return any(
        base.__name__ == "Model" and base.__module__.split(".")[0] == "keras" for base in type(model).__mro__
    )


def _warn_without_signatures(path: str) -> None:
    import tensorflow as tf
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    with tf.io.gfile.GFile(posixpath.join(path, "saved_model.pb"), "rb") as file:
        graph = SavedModel.FromString(file.read()).meta_graphs[0]
    if not set(graph.signature_def) - {"__saved_model_init_op"}:
        _LOG.warning(
            "the exported model has no signatures, so TensorFlow Serving cannot use it: give signatures="
        )


def _versions(directory: str) -> list[int]:
    """The versions there are, oldest first."""
    import tensorflow as tf

    names = (name.rstrip("/") for name in tf.io.gfile.listdir(directory))
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def _rename_to_next(draft: str, directory: str) -> str:
    """Gives the draft the next number; one that another program took meanwhile is left to it."""
    import tensorflow as tf

    number = max(_versions(directory), default=0)
    for _ in range(_RENAMES):
        number += 1
        path = posixpath.join(directory, str(number))
        try:
            tf.io.gfile.rename(draft, path)
        except tf.errors.OpError:
            if not tf.io.gfile.exists(path) or not tf.io.gfile.exists(draft):
                raise
        else:
            return path
    raise tf.errors.AbortedError(
        None, None, f"{_RENAMES} numbers in {directory} were taken by others meanwhile"
    )


def _remove_old(directory: str, keep: int) -> None:
    with _only_warning(f"old versions in {directory}"):
        for version in _versions(directory)[:-keep]:
            _remove_version(directory, version)


def _remove_version(directory: str, version: int) -> None:
    """Takes a version away at once: it has another name while its files go."""
    import tensorflow as tf

    path = posixpath.join(directory, str(version))
    doomed = posixpath.join(directory, f"{_REMOVING}{uuid.uuid4()}")
    with _only_warning(path):
        tf.io.gfile.rename(path, doomed)
        _remove(doomed)


def _remove_left_over(directory: str, now_s: float) -> None:
    """Removes what programs that were killed left: unfinished folders older than a day."""
    import tensorflow as tf

    with _only_warning(f"what is left over in {directory}"):
        for name in tf.io.gfile.listdir(directory):
            if name.startswith((_WRITING, _REMOVING)):
                _remove_if_old(posixpath.join(directory, name.rstrip("/")), now_s)


def _remove_if_old(path: str, now_s: float) -> None:
    import tensorflow as tf

    with _only_warning(path):
        if now_s - tf.io.gfile.stat(path).mtime_nsec / 1e9 > _LEFT_OVER_AFTER_S:
            tf.io.gfile.rmtree(path)


def _remove(path: str) -> None:
    import tensorflow as tf

    with _only_warning(path):
        tf.io.gfile.rmtree(path)


@contextmanager
def _only_warning(what: str) -> Iterator[None]:
    """Tidying up neither undoes an export nor hides why one failed."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.NotFoundError:
        return
    except tf.errors.OpError as error:
        _LOG.warning("%s is not removed: %s", what, error.message)
