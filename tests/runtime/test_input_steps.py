"""Each batch counts as a step when it is drawn, whatever the pipeline makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime.input_files import make_shares, write_files

tf = pytest.importorskip("tensorflow")

from tfy.runtime import filesystem  # noqa: E402
from tfy.runtime.input import make_dataset  # noqa: E402

SET = 900


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    filesystem.register()
    monkeypatch.setenv("TFY_TASK_INDEX", "0")
    before = filesystem.read_counters().counts.get("steps", 0)
    yield lambda: filesystem.read_counters().counts.get("steps", 0) - before


PIPELINES: dict[str, Callable[..., object]] = {
    "tensor": lambda records: records.batch(2),
    "tuple": lambda records: records.batch(2).map(lambda batch: (batch, tf.size(batch))),
    "one in a tuple": lambda records: records.batch(2).map(lambda batch: (batch,)),
    "dict": lambda records: records.batch(2).map(lambda batch: {"image": batch, "label": batch}),
    "nested": lambda records: records.batch(2).map(lambda batch: ({"a": batch}, batch)),
    "ragged": lambda records: records.batch(2).map(tf.strings.bytes_split),
    "parallel": lambda records: records.batch(2).map(tf.identity, num_parallel_calls=2),
    "prefetched": lambda records: records.batch(2).prefetch(4),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_each_batch_counts_when_it_is_drawn(tmp_path: Path, counted: Callable[[], int], name: str) -> None:
    write_files(tmp_path, [6])
    dataset = make_dataset(make_shares(tmp_path, 1), PIPELINES[name], set_number=SET)
    plain = PIPELINES[name](tf.data.TFRecordDataset(str(tmp_path / "part-r-00000")))
    assert dataset.element_spec == plain.element_spec  # type: ignore[attr-defined]
    iterator = iter(dataset)
    for drawn in range(1, 20):
        next(iterator)
        assert counted() == drawn


@pytest.mark.parametrize("name", PIPELINES)
def test_an_epoch_counts_its_batches(tmp_path: Path, counted: Callable[[], int], name: str) -> None:
    write_files(tmp_path, [6])
    dataset = make_dataset(make_shares(tmp_path, 1, unequal="drop"), PIPELINES[name], set_number=SET)
    assert [len(list(dataset)) for _ in range(2)] == [3, 3]
    assert counted() == 6
