"""Where tasks have unequal numbers of records, they draw equal numbers of batches or are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.input_files import make_shares, write_files
from tests.runtime.input_tasks import Tasks
from tfy.errors import InternalError, SpecError

pytest.importorskip("tensorflow")

from tfy.runtime import filesystem

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    filesystem.register()
    return Tasks(monkeypatch)


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
