"""Checkpoints for tests, and what can be wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def save(tf: Any, prefix: Path | str, value: float = 1.0, size: int = 100) -> str:
    """A checkpoint of one variable `v`, written under exactly this prefix, named by no state file."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(tf.fill([size], float(value))))
    assert checkpoint.save_counter == 0  # made when it is asked for, and then saved as by save()
    return str(checkpoint.write(str(prefix)))


def save_managed(tf: Any, folder: Path | str, values: list[float], keep: int | None = 3) -> list[str]:
    """What a CheckpointManager leaves after saving `values` one after the other, oldest first."""
    variable = tf.Variable(tf.zeros([100]))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=variable), str(folder), max_to_keep=keep)
    for value in values:
        variable.assign(tf.fill([100], float(value)))
        manager.save()
    return list(manager.checkpoints)


def data_file(prefix: str) -> Path:
    """The data file of a checkpoint that has one."""
    return Path(f"{prefix}.data-00000-of-00001")


def index_file(prefix: str) -> Path:
    return Path(f"{prefix}.index")


def cut(path: Path, by: int = 1) -> None:
    """Takes the last `by` bytes away."""
    path.write_bytes(path.read_bytes()[:-by])


def flip(path: Path, at: int = 50) -> None:
    """Changes a byte in place: the length stays, the checksum does not fit."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def value_of(variable: Any) -> float:
    """The one value that all elements have; fails where they differ."""
    values = set(variable.numpy().ravel().tolist())
    assert len(values) == 1, values
    return float(values.pop())


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What tfy logged; TensorFlow says things of its own, whenever Python collects its objects."""
    return [record.getMessage() for record in caplog.records if record.name == "tfy"]
