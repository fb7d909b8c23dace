"""Resuming, following and managing checkpoints, as a program in a job does."""

from __future__ import annotations

import logging
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
    value_of,
)
from tfy.errors import StartError
from tfy.runtime.checkpoints import (
    find_newest_complete,
    follow_checkpoints,
    make_checkpoint_manager,
    restore_newest,
)


@pytest.fixture
def variable(tf: Any) -> Any:
    return tf.Variable(tf.zeros([100]))


@pytest.fixture
def checkpoint(tf: Any, variable: Any) -> Any:
    return tf.train.Checkpoint(v=variable)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- find -------------------------------------------------------------------------------------
def test_an_incomplete_newest_one_is_passed_over_with_a_word(
    tf: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    assert find_newest_complete(str(tmp_path)) == f"{tmp_path}/ckpt-3"
    assert find_newest_complete(str(tmp_path), without=[f"{tmp_path}/ckpt-3"]) == f"{tmp_path}/ckpt-2"
    assert caplog.messages == []
    cut(data_file(f"{tmp_path}/ckpt-3"))
    before = contents(tmp_path)
    assert find_newest_complete(str(tmp_path)) == f"{tmp_path}/ckpt-2"
    (told,) = caplog.messages
    assert f"checkpoint {tmp_path}/ckpt-3 is passed over: ckpt-3.data-00000-of-00001 has" in told
    assert contents(tmp_path) == before
    assert find_newest_complete(f"{tmp_path}/none") is None


# --- restore ----------------------------------------------------------------------------------
def test_there_is_nothing_to_restore(tmp_path: Path, checkpoint: Any, variable: Any) -> None:
    assert restore_newest(checkpoint, f"{tmp_path}/none") is None
    assert restore_newest(checkpoint, str(tmp_path)) is None
    assert value_of(variable) == 0


def test_the_newest_is_restored_and_its_counter_goes_on(
    tf: Any, tmp_path: Path, checkpoint: Any, variable: Any
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    assert restore_newest(checkpoint, str(tmp_path)) == f"{tmp_path}/ckpt-3"
    assert value_of(variable) == 3
    assert checkpoint.save(f"{tmp_path}/ckpt") == f"{tmp_path}/ckpt-4"


DAMAGE: dict[str, Callable[[str], object]] = {
    "data cut": lambda prefix: cut(data_file(prefix)),
    "data changed": lambda prefix: flip(data_file(prefix)),
    "data gone": lambda prefix: data_file(prefix).unlink(),
    "index cut": lambda prefix: cut(index_file(prefix)),
    "index empty": lambda prefix: index_file(prefix).write_bytes(b""),
    "index changed": lambda prefix: flip(index_file(prefix)),
    "index gone": lambda prefix: index_file(prefix).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_next_older_takes_its_place(
    tf: Any, tmp_path: Path, checkpoint: Any, variable: Any, damage: str
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    DAMAGE[damage](f"{tmp_path}/ckpt-3")
    before = contents(tmp_path)
    assert restore_newest(checkpoint, str(tmp_path)) == f"{tmp_path}/ckpt-2"
    assert value_of(variable) == 2
    assert contents(tmp_path) == before


def test_what_was_read_of_a_damaged_one_is_overwritten(tf: Any, tmp_path: Path) -> None:
    def make(value: float) -> Any:
        return tf.train.Checkpoint(a=tf.Variable(tf.fill([50], value)), b=tf.Variable(tf.fill([50], value)))

    for value in (1.0, 2.0):
        make(value).write(f"{tmp_path}/ckpt-{value:.0f}")
    flip(data_file(f"{tmp_path}/ckpt-2"), at=250)
    program = make(0.0)
    assert restore_newest(program, str(tmp_path)) == f"{tmp_path}/ckpt-1"
    assert (value_of(program.a), value_of(program.b)) == (1, 1)


def test_if_none_can_be_restored_each_is_named_with_its_reason(
    tf: Any, tmp_path: Path, checkpoint: Any
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    flip(data_file(f"{tmp_path}/ckpt-1"))
    data_file(f"{tmp_path}/ckpt-2").unlink()
    index_file(f"{tmp_path}/ckpt-3").unlink()
    with pytest.raises(StartError) as raised:
        restore_newest(checkpoint, str(tmp_path))
    message = raised.value.message
    assert f"no checkpoint in {tmp_path} can be restored (ckpt-3: it has no .index file; " in message
    assert "ckpt-2: ckpt-2.data-00000-of-00001 is missing; ckpt-1: " in message
    assert "Checksum does not match" in message
    assert raised.value.hint


def test_a_first_save_that_was_killed_is_no_checkpoint(
    tf: Any, tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    index_file(save(tf, tmp_path / "ckpt-1")).write_bytes(b"")
    assert restore_newest(checkpoint, str(tmp_path)) is None
    index_file(f"{tmp_path}/ckpt-1").unlink()
    assert restore_newest(checkpoint, str(tmp_path)) is None
    assert len(caplog.messages) == 2
    # But where a state file tells of saves that ended, even if it cannot be read:
    (tmp_path / "checkpoint").write_text("garbage")
    with pytest.raises(StartError):
        restore_newest(checkpoint, str(tmp_path))


def test_other_shapes_are_the_programs_own_fault(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 2])
    with pytest.raises(ValueError, match="incompatible tensor"):
        restore_newest(tf.train.Checkpoint(v=tf.Variable(tf.zeros([7]))), str(tmp_path))


def test_what_a_checkpoint_does_not_hold_is_told(
    tf: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1])
    program = tf.train.Checkpoint(v=tf.Variable(tf.zeros([100])), added=tf.Variable(7))
    assert restore_newest(program, str(tmp_path))
    assert any("does not hold all that the program has" in message for message in caplog.messages)


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_restore_from_hdfs(tf: Any, folder: str, checkpoint: Any, variable: Any) -> None:
    save_managed(tf, folder, [1, 2, 3])
    tf.io.gfile.remove(f"{folder}/ckpt-3.data-00000-of-00001")
    assert restore_newest(checkpoint, folder) == f"{folder}/ckpt-2"
    assert value_of(variable) == 2


# --- follow -----------------------------------------------------------------------------------
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
    tf: Any, tmp_path: Path, checkpoint: Any, variable: Any
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
    assert caplog.messages == []


def test_a_damaged_one_is_told_once_and_left_out(
    tf: Any, tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    flip(data_file(f"{tmp_path}/ckpt-3"))
    cut(data_file(save(tf, tmp_path / "ckpt-4", 4)))
    assert follow(checkpoint, tmp_path, Trainer(lambda: None, lambda: None)) == [("ckpt-2", 2)]
    damaged, last = caplog.messages
    assert "ckpt-3 is passed over: " in damaged
    assert "ckpt-4, the last one, is passed over: " in last


def test_there_never_was_one(tmp_path: Path, checkpoint: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert follow(checkpoint, tmp_path / "none", Trainer(lambda: None, lambda: None)) == []
    assert caplog.record_tuples == [
        (
            "tfy",
            logging.WARNING,
            f"the job is done and there was no checkpoint in {tmp_path}/none to follow",
        )
    ]


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


# --- the manager ------------------------------------------------------------------------------
def test_the_leads_manager_is_an_ordinary_one(tf: Any, tmp_path: Path, checkpoint: Any) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    cut(data_file(f"{tmp_path}/ckpt-3"))
    manager = make_checkpoint_manager(checkpoint, str(tmp_path), is_lead=True, keep=2)
    assert manager.latest_checkpoint == f"{tmp_path}/ckpt-2"
    manager.restore_or_initialize()
    for _ in range(3):
        manager.save()
    assert manager.checkpoints == [f"{tmp_path}/ckpt-4", f"{tmp_path}/ckpt-5"]
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/ckpt-5"


def test_the_others_read_the_leads_and_write_to_nowhere(
    tf: Any, tmp_path: Path, checkpoint: Any, variable: Any
) -> None:
    save_managed(tf, tmp_path, [1, 2])
    before = contents(tmp_path)
    manager = make_checkpoint_manager(checkpoint, str(tmp_path), is_lead=False, keep=2)
    assert manager.latest_checkpoint == f"{tmp_path}/ckpt-2"
    assert manager.restore_or_initialize() == f"{tmp_path}/ckpt-2"
    assert value_of(variable) == 2
    own = Path(manager.directory)
    for _ in range(3):
        saved = manager.save()
    assert saved == manager.latest_checkpoint == f"{own}/ckpt-5"
    assert [path.name for path in own.glob("*.index")] == ["ckpt-5.index"]
    assert contents(tmp_path) == before
    del manager
    assert not own.exists()


def test_a_first_run_has_nothing_to_read(tmp_path: Path, checkpoint: Any) -> None:
    for is_lead in (True, False):
        manager = make_checkpoint_manager(checkpoint, f"{tmp_path}/new", is_lead=is_lead, keep=None)
        assert manager.latest_checkpoint is None
