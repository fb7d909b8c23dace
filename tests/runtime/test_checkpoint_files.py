"""The order of a directory's checkpoints, and mending the state file that TensorFlow reads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.checkpoint_makers import cut, data_file, index_file, save, save_managed, value_of
from tests.runtime.hdfs_files import read, write
from tfy.runtime.checkpoint_files import list_checkpoints, repair_state


def names(folder: Path) -> list[str]:
    return [saved.name for saved in list_checkpoints(str(folder))]


def state(newest: str, *all_paths: str) -> str:
    """A state file's text."""
    lines = [f'model_checkpoint_path: "{newest}"']
    return "\n".join([*lines, *(f'all_model_checkpoint_paths: "{path}"' for path in all_paths)])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the state file."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checkpoint"}


def set_age(prefix: str, hours: float) -> None:
    now = index_file(prefix).stat().st_mtime
    os.utime(index_file(prefix), (now - 3600 * hours,) * 2)


# --- order ------------------------------------------------------------------------------------
def test_no_directory_and_an_empty_one_have_none(tf: Any, tmp_path: Path) -> None:
    assert names(tmp_path / "none") == names(tmp_path) == []


def test_the_state_files_order_counts(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1] * 12, keep=4)
    assert names(tmp_path) == ["ckpt-12", "ckpt-11", "ckpt-10", "ckpt-9"]
    # A run that began anew in the same directory: lower numbers are newer.
    (tmp_path / "checkpoint").write_text(state("ckpt-10", "ckpt-11", "ckpt-12", "ckpt-9", "ckpt-10"))
    assert names(tmp_path) == ["ckpt-10", "ckpt-9", "ckpt-12", "ckpt-11"]


def test_one_that_was_saved_after_the_state_file_is_newest(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 1], keep=4)
    save(tf, tmp_path / "ckpt-3")
    assert names(tmp_path) == ["ckpt-3", "ckpt-2", "ckpt-1"]


def test_a_higher_number_from_an_earlier_run_is_not_newer(tf: Any, tmp_path: Path) -> None:
    left = save(tf, tmp_path / "ckpt-90")
    save_managed(tf, tmp_path, [1, 1], keep=4)
    set_age(left, hours=1)
    assert names(tmp_path) == ["ckpt-2", "ckpt-1", "ckpt-90"]


@pytest.mark.parametrize("text", [None, "", "model_checkpoint_path: ", "\0\xff\0", 'other: "x"'])
def test_without_a_readable_state_file_numbers_count_as_numbers(
    tf: Any, tmp_path: Path, text: str | None
) -> None:
    for number in (2, 10, 9):
        save(tf, tmp_path / f"ckpt-{number}")
    save(tf, tmp_path / "best")
    if text is not None:
        (tmp_path / "checkpoint").write_bytes(text.encode("latin-1"))
    assert names(tmp_path) == ["ckpt-10", "ckpt-9", "ckpt-2"]


def test_without_a_state_file_the_series_that_was_saved_last_counts(tf: Any, tmp_path: Path) -> None:
    old = [save(tf, tmp_path / f"old-{number}") for number in (8, 9)]
    for number in (1, 2):
        save(tf, tmp_path / f"ckpt-{number}")
    for prefix in old:
        set_age(prefix, hours=1)
    assert names(tmp_path) == ["ckpt-2", "ckpt-1"]


def test_keras_names_are_one_series(tf: Any, tmp_path: Path) -> None:
    for name in ("cp-0009-0.31", "cp-0010-0.2", "cp-0002-0.9"):
        save(tf, tmp_path / name)
    (tmp_path / "checkpoint").write_text(state("cp-0010-0.2", "cp-0010-0.2"))
    assert names(tmp_path) == ["cp-0010-0.2", "cp-0009-0.31", "cp-0002-0.9"]


@pytest.mark.parametrize("where", ["/elsewhere/run", "hdfs://ns1/elsewhere"])
def test_a_state_file_from_another_folder_orders_what_is_here(tf: Any, tmp_path: Path, where: str) -> None:
    for number in (1, 2, 3):
        save(tf, tmp_path / f"ckpt-{number}")
    (tmp_path / "checkpoint").write_text(
        state(f"{where}/ckpt-2", f"{where}/ckpt-3", f"{where}/ckpt-1", f"{where}/ckpt-2")
    )
    assert names(tmp_path) == ["ckpt-2", "ckpt-1", "ckpt-3"]


def test_what_the_state_file_names_and_is_gone_is_none(tf: Any, tmp_path: Path) -> None:
    save(tf, tmp_path / "ckpt-1")
    (tmp_path / "checkpoint").write_text(state("ckpt-3", "ckpt-1", "ckpt-2", "ckpt-3"))
    assert names(tmp_path) == ["ckpt-1"]


def test_half_saved_ones_are_seen(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 1])
    index_file(save(tf, tmp_path / "ckpt-3")).unlink()
    (tmp_path / "ckpt-4_temp").mkdir()
    saved = list_checkpoints(str(tmp_path))
    assert [(each.name, each.has_index, each.named) for each in saved] == [
        ("ckpt-3", False, False),
        ("ckpt-2", True, True),
        ("ckpt-1", True, True),
    ]


# --- repair -----------------------------------------------------------------------------------
def resume(tf: Any, folder: Path) -> tuple[str | None, float, Any]:
    """What a program that knows nothing of tfy restores: the path, the value, its manager."""
    variable = tf.Variable(tf.zeros([100]))
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=3)
    assert manager.latest_checkpoint == tf.train.latest_checkpoint(str(folder))
    checkpoint.restore(manager.latest_checkpoint)
    return manager.latest_checkpoint, value_of(variable), manager


def test_a_normal_directory_is_left_alone(tf: Any, tmp_path: Path) -> None:
    assert repair_state(f"{tmp_path}/none") is None
    assert repair_state(str(tmp_path)) is None
    save_managed(tf, tmp_path, [1, 2, 3, 4])
    before = (tmp_path / "checkpoint").stat()
    assert repair_state(str(tmp_path)) is None
    assert repair_state(f"{tmp_path}/") is None
    after = (tmp_path / "checkpoint").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def lose_data(folder: Path) -> None:
    cut(data_file(f"{folder}/ckpt-4"))


def lose_index(folder: Path) -> None:
    index_file(f"{folder}/ckpt-4").unlink()


def lose_all(folder: Path) -> None:
    lose_index(folder)
    data_file(f"{folder}/ckpt-4").unlink()


@pytest.mark.parametrize("lose", [lose_data, lose_index, lose_all])
def test_a_plain_manager_resumes_from_the_newest_complete_one(tf: Any, tmp_path: Path, lose: Any) -> None:
    save_managed(tf, tmp_path, [1, 2, 3, 4])
    lose(tmp_path)
    before = contents(tmp_path)
    told = repair_state(str(tmp_path))
    assert told
    assert "led to ckpt-4; it now leads to ckpt-3" in told
    assert contents(tmp_path) == before
    path, value, manager = resume(tf, tmp_path)
    assert (path, value) == (f"{tmp_path}/ckpt-3", 3)
    assert manager.checkpoints == [f"{tmp_path}/ckpt-2", f"{tmp_path}/ckpt-3"]
    # Goes on over the remains, deletes by age as ever, and is whole again.
    assert manager.save() == f"{tmp_path}/ckpt-4"
    assert manager.save() == f"{tmp_path}/ckpt-5"
    assert manager.checkpoints == [f"{tmp_path}/ckpt-{number}" for number in (3, 4, 5)]
    assert repair_state(str(tmp_path)) is None


@pytest.mark.parametrize("text", [None, "", "garbage"])
def test_a_lost_state_file_is_made_anew(tf: Any, tmp_path: Path, text: str | None) -> None:
    save_managed(tf, tmp_path, [1, 2, 3, 4])
    (tmp_path / "checkpoint").unlink()
    if text is not None:
        (tmp_path / "checkpoint").write_text(text)
    assert repair_state(str(tmp_path))
    path, value, manager = resume(tf, tmp_path)
    assert (path, value) == (f"{tmp_path}/ckpt-4", 4)
    # It deletes by this list, and nobody knows what else was meant to stay.
    assert manager.checkpoints == [f"{tmp_path}/ckpt-4"]


def test_one_saved_just_before_the_kill_is_found(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 2])
    save(tf, tmp_path / "ckpt-3", 3)
    assert repair_state(str(tmp_path))
    path, value, manager = resume(tf, tmp_path)
    assert (path, value) == (f"{tmp_path}/ckpt-3", 3)
    assert len(manager.checkpoints) == 3


@pytest.mark.parametrize("where", ["hdfs://ns1/run", "/elsewhere/run"])
def test_a_state_file_brought_from_elsewhere_leads_here(tf: Any, tmp_path: Path, where: str) -> None:
    save_managed(tf, tmp_path, [1, 2])
    (tmp_path / "checkpoint").write_text(state(f"{where}/ckpt-2", f"{where}/ckpt-1", f"{where}/ckpt-2"))
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    assert repair_state(str(tmp_path))
    assert resume(tf, tmp_path)[:2] == (f"{tmp_path}/ckpt-2", 2)


def test_absolute_names_of_this_directory_are_as_good(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1])
    (tmp_path / "checkpoint").write_text(state(f"{tmp_path}/ckpt-1", f"{tmp_path}/ckpt-1"))
    assert repair_state(str(tmp_path)) is None


def test_many_may_repair_at_once_while_one_reads(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 2, 3])
    cut(data_file(f"{tmp_path}/ckpt-3"))
    with ThreadPoolExecutor(4) as pool:
        repairs = [pool.submit(repair_state, str(tmp_path)) for _ in range(20)]
        while not all(repair.done() for repair in repairs):
            read_meanwhile = tf.train.latest_checkpoint(str(tmp_path))
            assert read_meanwhile in (f"{tmp_path}/ckpt-2", f"{tmp_path}/ckpt-3")
        assert any(repair.result() for repair in repairs)
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/ckpt-2"
    assert [path.name for path in tmp_path.glob("checkpoint*")] == ["checkpoint"]


def test_a_loss_does_not_look_like_a_beginning(tf: Any, tmp_path: Path) -> None:
    (prefix,) = save_managed(tf, tmp_path, [1])
    cut(data_file(prefix))
    text = (tmp_path / "checkpoint").read_text()
    assert repair_state(str(tmp_path)) is None
    assert (tmp_path / "checkpoint").read_text() == text


def test_what_was_saved_by_hand_gets_no_state_file(tf: Any, tmp_path: Path) -> None:
    save(tf, tmp_path / "best")
    assert repair_state(str(tmp_path)) is None
    assert not (tmp_path / "checkpoint").exists()


def test_what_a_manager_does_not_manage_is_not_given_to_it(tf: Any, tmp_path: Path) -> None:
    save_managed(tf, tmp_path, [1, 2, 3, 4, 5, 6, 7], keep=None)
    # As keep_checkpoint_every_n_hours leaves it: the first four are no longer in the list.
    newest, *rest = (tmp_path / "checkpoint").read_text().splitlines()
    (tmp_path / "checkpoint").write_text("\n".join([newest, *rest[4:7], *rest[11:]]))
    cut(data_file(f"{tmp_path}/ckpt-7"))
    assert repair_state(str(tmp_path))
    manager = resume(tf, tmp_path)[2]
    for _ in range(4):
        manager.save()
    left = sorted(path.name for path in tmp_path.glob("*.index"))
    assert left == sorted(f"ckpt-{number}.index" for number in (1, 2, 3, 4, 8, 9, 10))


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_repair_on_hdfs(tf: Any, folder: str) -> None:
    save_managed(tf, folder, [1, 2, 3])
    assert repair_state(folder) is None
    shard = f"{folder}/ckpt-3.data-00000-of-00001"
    write(tf, shard, read(tf, shard)[:-1])
    assert repair_state(folder)
    assert tf.train.latest_checkpoint(folder) == f"{folder}/ckpt-2"
    left = [name for name in tf.io.gfile.listdir(folder) if name.startswith("checkpoint")]
    assert left == ["checkpoint"]
    variable = tf.Variable(tf.zeros([100]))
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)
    assert value_of(variable) == 2
    assert manager.save() == f"{folder}/ckpt-3"
    assert repair_state(folder) is None
