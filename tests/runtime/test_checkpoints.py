"""Resuming from checkpoints and managing them, as a program in a job does."""

from __future__ import annotations

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
from tfy.errors import StartError
from tfy.runtime.checkpoints import (
    find_newest_complete,
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
    assert told(caplog) == []
    cut(data_file(f"{tmp_path}/ckpt-3"))
    before = contents(tmp_path)
    assert find_newest_complete(str(tmp_path)) == f"{tmp_path}/ckpt-2"
    (message,) = told(caplog)
    assert f"checkpoint {tmp_path}/ckpt-3 is passed over: ckpt-3.data-00000-of-00001 has" in message
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
    assert len(told(caplog)) == 2
    # But where a state file tells of saves that ended, even if it cannot be read:
    (tmp_path / "checkpoint").write_text("garbage")
    with pytest.raises(StartError):
        restore_newest(checkpoint, str(tmp_path))


def test_other_shapes_are_the_programs_own_fault(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 2])
    with pytest.raises(StartError, match=r"does not fit the program's variables: .*incompatible tensor"):
        restore_newest(tf.train.Checkpoint(v=tf.Variable(tf.zeros([7]))), str(tmp_path))


def test_what_a_checkpoint_does_not_hold_is_told(
    tf: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_managed(tf, tmp_path, [1])
    program = tf.train.Checkpoint(v=tf.Variable(tf.zeros([100])), added=tf.Variable(7))
    assert restore_newest(program, str(tmp_path))
    assert any("does not hold all that the program has" in message for message in told(caplog))


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_restore_from_hdfs(tf: Any, folder: str, checkpoint: Any, variable: Any) -> None:
    save_managed(tf, folder, [1, 2, 3])
    tf.io.gfile.remove(f"{folder}/ckpt-3.data-00000-of-00001")
    assert restore_newest(checkpoint, folder) == f"{folder}/ckpt-2"
    assert value_of(variable) == 2


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
