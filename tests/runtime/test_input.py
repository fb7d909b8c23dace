"""The tasks' shares of the input, in this process as any task. test_input_cluster has real ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.input_files import make_shares, write_files
from tests.runtime.input_tasks import Tasks, progress_of
from tfy.epoch import check_epoch
from tfy.errors import SpecError
from tfy.shares import Split, make_input_shares

tf = pytest.importorskip("tensorflow")

from tfy.runtime import filesystem  # noqa: E402
from tfy.runtime.input import check_task  # noqa: E402

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    filesystem.register()
    return Tasks(monkeypatch)


# --- shares -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sizes", "workers", "form"),
    [
        ([10, 10, 10, 10, 10], 2, "plain"),
        ([10, 10, 10, 10, 10], 2, "gzip"),
        ([5, 4], 1, "zlib"),
        ([3, 7, 1], 3, "plain"),
        ([1] * 24, 12, "plain"),
    ],
)
def test_whole_files_where_there_are_enough(
    tmp_path: Path, tasks: Tasks, sizes: list[int], workers: int, form: str
) -> None:
    contents = write_files(tmp_path, sizes, form=form)
    shares = make_shares(tmp_path, workers)
    progresses = []
    for index, splits in enumerate(shares.shares):
        share = set().union(*(contents[split.file] for split in splits))
        progress, drawn = tasks.read(index, shares, epochs=3)
        progresses.append(progress)
        for epoch in range(3):
            assert set(drawn[epoch * len(share) : (epoch + 1) * len(share)]) == share
    assert check_epoch(shares, progresses).text == f"each of {sum(sizes)} records read exactly once"


@pytest.mark.parametrize(
    ("sizes", "workers", "shard"),
    [
        ([100], 2, "auto"),
        ([101], 2, "record"),
        ([40, 41], 3, "auto"),
        ([5, 60, 5], 2, "record"),
        ([900, 9, 900], 12, "auto"),
    ],
)
def test_records_where_files_are_too_few(
    tmp_path: Path, tasks: Tasks, sizes: list[int], workers: int, shard: str
) -> None:
    every = set().union(*write_files(tmp_path, sizes))
    shares = make_shares(tmp_path, workers, shard=shard)
    progresses, seen = [], []
    for index in range(workers):
        progress, drawn = tasks.read(index, shares, epochs=2)
        progresses.append(progress)
        half = len(drawn) // 2
        assert set(drawn[:half]) == set(drawn[half:])
        assert len(set(drawn)) == half
        seen += drawn[:half]
    assert check_epoch(shares, progresses).text == f"each of {sum(sizes):,} records read exactly once"
    assert set(seen) == every
    assert len(seen) == len(every)


def test_counted_shares_differ_by_one_record(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [101])
    shares = make_shares(tmp_path, 2, unequal="drop")
    counts = [len(tasks.draw(index, shares, 1000)) for index in range(2)]
    assert shares.records_of_tasks() == (51, 50)
    assert counts == [50, 50]


def test_the_order_of_files_changes_from_epoch_to_epoch_by_seed(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [1] * 8)
    shares = make_shares(tmp_path, 1)
    drawn = tasks.draw(0, shares, 5 * 8)
    passes = {tuple(drawn[start : start + 8]) for start in range(0, 40, 8)}
    assert len(passes) > 1
    assert all(len(set(order)) == 8 for order in passes)
    assert drawn == tasks.draw(0, shares, 5 * 8)
    assert drawn != tasks.draw(0, shares, 5 * 8, seed=1)


def test_each_iteration_goes_on_with_the_next_epoch(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [1] * 8)
    shares = make_shares(tmp_path, 1, unequal="drop")
    dataset, number = tasks.dataset(0, shares)
    orders = [tuple(dataset.as_numpy_iterator()) for _ in range(4)]
    assert len(set(orders)) > 1
    assert {len(order) for order in orders} == {8}
    assert (progress_of(number).epochs, progress_of(number).uneven) == (4, 0)


@pytest.mark.timeout(60)
def test_an_empty_share_is_an_error_not_an_endless_loop(tmp_path: Path, tasks: Tasks) -> None:
    """A range in which no record begins, as bytes alone cannot tell."""
    write_files(tmp_path, [2])
    shares = make_shares(tmp_path, 1)
    (file,) = shares.files
    cut = [[Split(file=0, start=0, end=20)], [Split(file=0, start=20, end=30)]]
    shares = make_input_shares([file], [*cut, [Split(file=0, start=30, end=file.length)]], "worker", "repeat")
    with pytest.raises(tf.errors.InvalidArgumentError, match="worker:1 has no record to read: 1 file"):
        tasks.draw(1, shares, 1)


def test_names_may_hold_anything(tmp_path: Path, tasks: Tasks) -> None:
    folder = tmp_path / "ü x=1?#%20"
    (every,) = write_files(folder, [30])
    (folder / "part-r-00000").rename(folder / "a b?c=[1] {2}")
    shares = make_shares(folder, 2)
    assert check_epoch(shares, tasks.read_epoch(shares)).state == "exact"
    assert set(tasks.draw(0, shares, 100)) | set(tasks.draw(1, shares, 100)) == every


# --- proved ---------------------------------------------------------------------------------------
def test_a_split_that_is_broken_on_purpose_is_caught_by_what_was_read(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [10, 10])
    honest = make_shares(tmp_path, 2)
    assert check_epoch(honest, tasks.read_epoch(honest)).state == "exact"
    first, second = honest.shares
    for broken in [(first, first), (second, second), (first + second, second), (first, second + second)]:
        check = check_epoch(honest, tasks.read_epoch(replace(honest, shares=broken)))
        assert check.state == "wrong"
        assert "read twice or never" in check.text


def test_a_range_that_is_broken_on_purpose_is_caught(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [1000])
    honest = make_shares(tmp_path, 2)
    (first,), (second,) = honest.shares
    for cut in (-100, 100):
        broken = ((replace(first, end=first.end + cut),), (second,))
        check = check_epoch(honest, tasks.read_epoch(replace(honest, shares=broken)))
        assert check.state == "wrong"


def test_an_epoch_that_is_left_in_its_middle_claims_nothing(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [50_000])
    shares = make_shares(tmp_path, 1)
    dataset, number = tasks.dataset(0, shares)
    assert len(list(islice(dataset, 10))) == 10
    assert progress_of(number).epochs == 0
    assert check_epoch(shares, [progress_of(number)]).state == "open"


@pytest.mark.parametrize(
    ("task_type", "strategy", "allowed"),
    [
        ("worker", "multi_worker_mirrored", True),
        ("worker", "none", True),
        ("chief", "parameter_server", True),
        ("chief", "none", False),
        ("ps", "none", False),
        ("evaluator", "parameter_server", False),
        ("evaluator", "multi_worker_mirrored", False),
    ],
)
def test_a_task_without_a_share_is_told_who_has_one(
    tmp_path: Path, task_type: str, strategy: str, allowed: bool
) -> None:
    write_files(tmp_path, [10, 10])
    shares = make_shares(tmp_path, 2)
    if allowed:
        check_task(shares, task_type, strategy)
    else:
        with pytest.raises(SpecError, match=f"of type {task_type} has no share.* 2 tasks of type worker"):
            check_task(shares, task_type, strategy)


def test_no_strategy_shards_the_shares_again(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [10])
    shares = make_shares(tmp_path, 1)
    for pipeline in (lambda records: records.batch(2), _ask_for_sharding):
        dataset, _ = tasks.dataset(0, shares, pipeline)
        policy = dataset.options().experimental_distribute.auto_shard_policy
        assert policy is tf.data.experimental.AutoShardPolicy.OFF


def _ask_for_sharding(records: Any) -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return records.batch(2).with_options(options)
