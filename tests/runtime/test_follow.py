"""An evaluator that follows the checkpoints of a trainer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.checkpoint_makers import (
    cut,
    data_file,
    flip,
    index_file,
    save,
    save_managed,
    told,
    value_of,
)
from tfy.runtime.checkpoints import follow_checkpoints


@pytest.fixture
def checkpoint(tf: Any) -> Any:
    return tf.train.Checkpoint(v=tf.Variable(tf.zeros([100])))


class Trainer:
    """What happens on the other side each time that the evaluator waits: one step after another."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self.ended = False

    def wait(self, seconds: float) -> None:
        assert seconds == 3
        self._steps.pop(0)()
        self.ended = not self._steps

    def done(self) -> bool:
        return self.ended


def follow(checkpoint: Any, folder: Path | str, trainer: Trainer) -> list[tuple[str, float]]:
    """Name and value of each checkpoint as it was restored."""
    paths = follow_checkpoints(checkpoint, str(folder), done=trainer.done, poll_s=3, wait=trainer.wait)
    return [(path.rpartition("/")[2], value_of(checkpoint.v)) for path in paths]


def test_each_new_one_is_seen_once_and_the_last_before_the_end_too(
    tf: Any, tmp_path: Path, checkpoint: Any
) -> None:
    source = tf.Variable(tf.zeros([100]))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=source), str(tmp_path), max_to_keep=2)

    def save_next() -> None:
        source.assign_add(tf.ones([100]))
        manager.save()

    def save_two() -> None:
        save_next()
        save_next()

    trainer = Trainer(lambda: None, save_next, lambda: None, save_two, save_next)
    assert follow(checkpoint, tmp_path, trainer) == [("ckpt-1", 1), ("ckpt-3", 3), ("ckpt-4", 4)]


def test_one_saved_in_the_last_moment_is_not_lost(tf: Any, tmp_path: Path, checkpoint: Any) -> None:
    def done() -> bool:
        # Saved after the evaluator last looked, and before it hears of the end.
        save_managed(tf, tmp_path, [7])
        return True

    paths = follow_checkpoints(checkpoint, str(tmp_path), done=done)
    assert next(paths) == f"{tmp_path}/ckpt-1"
    assert value_of(checkpoint.v) == 7


def test_one_that_is_deleted_does_not_bring_back_an_older_one(
    tf: Any, tmp_path: Path, checkpoint: Any
) -> None:
    save_managed(tf, tmp_path, [1, 2])

    def delete() -> None:
        index_file(f"{tmp_path}/ckpt-2").unlink()
        data_file(f"{tmp_path}/ckpt-2").unlink()

    assert follow(checkpoint, tmp_path, Trainer(delete)) == [("ckpt-2", 2)]


def test_one_saved_anew_under_its_name_is_new(tf: Any, tmp_path: Path, checkpoint: Any) -> None:
    save_managed(tf, tmp_path, [1])
    trainer = Trainer(lambda: save(tf, tmp_path / "ckpt-1", 5))
    assert follow(checkpoint, tmp_path, trainer) == [("ckpt-1", 1), ("ckpt-1", 5)]


def test_one_that_is_being_written_is_waited_for(
    tf: Any, tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1])
    index = index_file(save(tf, tmp_path / "ckpt-2", 2))
    whole = index.read_bytes()
    index.write_bytes(whole[:100])
    trainer = Trainer(index.unlink, lambda: index.write_bytes(whole), lambda: None)
    assert follow(checkpoint, tmp_path, trainer) == [("ckpt-1", 1), ("ckpt-2", 2)]
    assert told(caplog) == []


def test_a_damaged_one_is_told_once_and_left_out(
    tf: Any, tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    flip(data_file(f"{tmp_path}/ckpt-3"))
    cut(data_file(save(tf, tmp_path / "ckpt-4", 4)))
    assert follow(checkpoint, tmp_path, Trainer(lambda: None, lambda: None)) == [("ckpt-2", 2)]
    damaged, last = told(caplog)
    assert "ckpt-3 is passed over: " in damaged
    assert "ckpt-4, the last one, is passed over: " in last


def test_there_never_was_one(tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert follow(checkpoint, tmp_path / "none", Trainer(lambda: None, lambda: None)) == []
    assert told(caplog) == [f"the job is done and there was no checkpoint in {tmp_path}/none to follow"]


@pytest.mark.parametrize("place", ["local", pytest.param("hdfs", marks=pytest.mark.cluster)])
@pytest.mark.timeout(180)
def test_a_trainer_that_keeps_one_never_breaks_its_evaluator(
    tf: Any, tmp_path: Path, checkpoint: Any, place: str, request: pytest.FixtureRequest
) -> None:
    directory = request.getfixturevalue("folder") if place == "hdfs" else str(tmp_path)
    saves = 4 if place == "hdfs" else 200
    done = threading.Event()

    def train() -> None:
        save_managed(tf, directory, [float(at) for at in range(saves)], keep=1)
        done.set()

    trainer = threading.Thread(target=train)
    trainer.start()
    try:
        pause = threading.Event()
        paths = follow_checkpoints(
            checkpoint, directory, done=done.is_set, poll_s=0.01, wait=lambda seconds: pause.wait(seconds)
        )
        seen = [(int(path.rpartition("-")[2]), value_of(checkpoint.v)) for path in paths]
    finally:
        trainer.join(timeout=120)
    assert seen == sorted(seen)
    assert all(value == number - 1 for number, value in seen)
    assert seen[-1] == (saves, saves - 1)
    assert len({number for number, _ in seen}) == len(seen) > 1
