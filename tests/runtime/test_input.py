"""The tasks' shares of the input, in this process as any task. test_input_cluster has real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.input_files import make_shares, write_files
from tfy.contract import InputProgress
from tfy.epoch import check_epoch
from tfy.errors import InternalError, SpecError
from tfy.shares import InputShares, Split, make_input_shares

tf = pytest.importorskip("tensorflow")

from tfy.runtime import filesystem  # noqa: E402
from tfy.runtime.input import check_task, make_dataset  # noqa: E402

pytestmark = pytest.mark.timeout(120)
FIRST_SET = 1000


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    filesystem.register()


@pytest.fixture(scope="module")
def sets() -> Iterator[int]:
    """Numbers of sets that no other test in this process uses."""
    return count(FIRST_SET)


def progress_of(number: int) -> InputProgress:
    """What this process has read of a set, as it is reported."""
    for counters in filesystem.read_counters().input:
        if counters.set == number:
            return InputProgress(
                records=counters.records,
                epochs=counters.epochs,
                epoch_records=counters.epoch_records,
                epoch_bytes=counters.epoch_bytes,
                coverage=counters.coverage,
                uneven=counters.uneven,
            )
    return InputProgress()


class Tasks:
    """Every task of a job, one after another in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sets: Iterator[int]) -> None:
        self.monkeypatch = monkeypatch
        self.sets = sets

    def dataset(
        self, index: int, shares: InputShares, pipeline: Any = lambda records: records, **how: int
    ) -> Any:
        """The dataset of task `index`, and the number of its set."""
        self.monkeypatch.setenv("TFY_TASK_INDEX", str(index))
        number = next(self.sets)
        return make_dataset(shares, pipeline, set_number=number, **how), number

    def draw(self, index: int, shares: InputShares, most: int, **how: int) -> list[bytes]:
        """The first records that task `index` reads."""
        dataset, _ = self.dataset(index, shares, **how)
        return list(islice(dataset.as_numpy_iterator(), most))

    def read_epoch(self, shares: InputShares) -> list[InputProgress]:
        """What the plugin counted when each task has read its share to the end, and not much more."""
        found = []
        for index in range(len(shares.shares)):
            dataset, number = self.dataset(index, shares)
            records = iter(dataset)
            while not progress_of(number).epochs:
                next(records)
            found.append(progress_of(number))
        return found


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, sets: Iterator[int]) -> Tasks:
    return Tasks(monkeypatch, sets)


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
    for index, splits in enumerate(shares.shares):
        share = set().union(*(contents[split.file] for split in splits))
        drawn = tasks.draw(index, shares, 3 * len(share))
        for epoch in range(3):
            assert set(drawn[epoch * len(share) : (epoch + 1) * len(share)]) == share
    assert (
        check_epoch(shares, tasks.read_epoch(shares)).text
        == f"each of {sum(sizes)} records read exactly once"
    )


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
    progresses = tasks.read_epoch(shares)
    check = check_epoch(shares, progresses)
    assert check.text == f"each of {sum(sizes):,} records read exactly once"
    drawn = [
        tasks.draw(index, shares, 2 * progress.epoch_records) for index, progress in enumerate(progresses)
    ]
    for records in drawn:
        half = len(records) // 2
        assert set(records[:half]) == set(records[half:])
        assert len(set(records)) == half
    assert set().union(*drawn) == every
    assert sum(len(set(records)) for records in drawn) == len(every)


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


# --- unequal ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("remainder", "sizes", "expected"),
    [
        (False, [100, 101], 1),
        (False, [100, 100], 1),
        (False, [150, 151], 2),
        (False, [201, 250], 3),
        (True, [199, 250], 1),
        (True, [200, 250], 2),
    ],
)
def test_drop_gives_every_task_the_same_number_of_batches(
    tmp_path: Path, tasks: Tasks, remainder: bool, sizes: list[int], expected: int
) -> None:
    write_files(tmp_path, sizes)
    shares = make_shares(tmp_path, 2, unequal="drop")
    for index in range(2):
        dataset, _ = tasks.dataset(
            index, shares, lambda records: records.batch(100, drop_remainder=remainder)
        )
        assert dataset.cardinality() == expected
        for _ in range(2):
            assert len(list(dataset)) == expected


def test_refuse_names_the_tasks_that_differ(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [100, 101])
    shares = make_shares(tmp_path, 2, unequal="refuse")
    messages = set()
    for index in range(2):
        with pytest.raises(SpecError) as raised:
            tasks.dataset(index, shares, lambda records: records.batch(100))
        messages.add(raised.value.message)
    (message,) = messages
    assert message.endswith("worker:1 makes 1 of 100 records; worker:0 makes 2 of 101 records")
    dataset, _ = tasks.dataset(0, shares, lambda records: records.batch(60))
    assert len(list(dataset)) == 2


@pytest.mark.parametrize("unequal", ["drop", "refuse"])
@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        (lambda records: records.filter(lambda _: True).batch(2), "tf.data cannot tell"),
        (lambda records: records.batch(2).unbatch().batch(3), "tf.data cannot tell"),
        (lambda records: records.repeat().batch(2), "needs a pipeline that ends"),
        (lambda records: records.batch(2).repeat(), "needs a pipeline that ends"),
        (lambda records: records.batch(20, drop_remainder=True), "leaves no batch to draw"),
    ],
)
def test_a_pipeline_that_cannot_be_equal_is_refused(
    tmp_path: Path, tasks: Tasks, unequal: str, pipeline: Callable[[Any], Any], reason: str
) -> None:
    write_files(tmp_path, [10, 10])
    with pytest.raises(SpecError, match=reason):
        tasks.dataset(0, make_shares(tmp_path, 2, unequal=unequal), pipeline)


def test_shares_that_were_not_counted_are_no_equal_ones(tmp_path: Path, tasks: Tasks) -> None:
    write_files(tmp_path, [10, 10])
    with pytest.raises(InternalError, match="were not counted"):
        tasks.dataset(0, replace(make_shares(tmp_path, 2), unequal="drop"))


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
