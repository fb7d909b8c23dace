"""The workers' shares of the input, in this process as any worker. test_input_cluster has real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tfy.errors import SpecError

tf = pytest.importorskip("tensorflow")

from tfy.runtime import filesystem  # noqa: E402
from tfy.runtime.input import list_files, make_dataset  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    filesystem.register()


def write_files(folder: Path, sizes: list[int]) -> list[set[bytes]]:
    """One TFRecord file a size; the records of each."""
    contents = []
    for number, size in enumerate(sizes):
        records = [f"{number}-{record}".encode() for record in range(size)]
        with tf.io.TFRecordWriter(str(folder / f"part-r-{number:05d}")) as writer:
            for record in records:
                writer.write(record)
        contents.append(set(records))
    return contents


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bytes]]:
    def draw_as(index: int, paths: Path, workers: int, count: int) -> list[bytes]:
        """The first `count` records that worker `index` reads."""
        monkeypatch.setenv("TFY_TASK_INDEX", str(index))
        dataset = make_dataset([str(paths)], lambda records: records, workers)
        return list(islice(dataset.as_numpy_iterator(), count))

    return draw_as


# --- listing ----------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "part-r-00003",
        "part-r-00001.tfrecord",
        "_SUCCESS",
        ".part-r-00003.crc",
        "part-r-00003.crc",
        "_temporary/0/part-r-00009",
        "day=1/part-r-00001",
        "day=1/_SUCCESS",
        "a b/part 1",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ("a b/part 1", "day=1/part-r-00001", "part-r-00001.tfrecord", "part-r-00003")),
        ("", ("a b/part 1", "day=1/part-r-00001", "part-r-00001.tfrecord", "part-r-00003")),
        ("part-r-*", ("part-r-00001.tfrecord", "part-r-00003")),
        ("part-r-00003", ("part-r-00003",)),
        ("day=1", ("day=1/part-r-00001",)),
        ("day=1/", ("day=1/part-r-00001",)),
        ("day=*/*", ("day=1/part-r-00001",)),
        ("a b/*", ("a b/part 1",)),
    ],
)
def test_data_files_are_found(folder: Path, pattern: str, expected: tuple[str, ...]) -> None:
    assert list_files([f"{folder}/{pattern}"]) == tuple(f"{folder}/{name}" for name in expected)


def test_a_file_that_two_patterns_match_is_read_once(folder: Path) -> None:
    assert list_files([f"{folder}/part-*", f"{folder}/*3"]) == (
        f"{folder}/part-r-00001.tfrecord",
        f"{folder}/part-r-00003",
    )


@pytest.mark.parametrize("pattern", ["*.none", "none/*", "none", "_*", ".*", "*.crc", "_temporary/_*"])
def test_a_pattern_that_matches_no_data_is_named(folder: Path, pattern: str) -> None:
    with pytest.raises(SpecError) as raised:
        list_files([f"{folder}/part-*", f"{folder}/{pattern}"])
    assert repr(f"{folder}/{pattern}") in raised.value.message


# --- shares -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sizes", "workers"),
    [([10, 10, 10, 10, 10], 2), ([3, 7, 1], 3), ([8], 1), ([5, 0, 4], 1), ([1] * 24, 12)],
)
def test_whole_files_where_there_are_enough(
    tmp_path: Path, draw: Callable[..., list[bytes]], sizes: list[int], workers: int
) -> None:
    contents = write_files(tmp_path, sizes)
    for index in range(workers):
        share = set().union(*contents[index::workers])
        drawn = draw(index, tmp_path, workers, 3 * len(share))
        for epoch in range(3):
            assert set(drawn[epoch * len(share) : (epoch + 1) * len(share)]) == share


@pytest.mark.parametrize(
    ("sizes", "workers"), [([100], 2), ([101], 2), ([40, 41], 3), ([2, 2], 4), ([9, 9, 9], 12)]
)
def test_records_where_files_are_too_few(
    tmp_path: Path, draw: Callable[..., list[bytes]], sizes: list[int], workers: int
) -> None:
    every = set().union(*write_files(tmp_path, sizes))
    shares = []
    for index in range(workers):
        first, *_ = drawn = draw(index, tmp_path, workers, 2 * len(every))
        # A pass ends where one of its records comes again.
        shares.append(set(drawn))
        assert all(drawn.count(record) >= 2 for record in shares[-1])
        assert first in shares[-1]
    assert set().union(*shares) == every
    assert sum(map(len, shares)) == len(every)
    assert max(map(len, shares)) - min(map(len, shares)) <= len(sizes)


def test_the_order_of_files_changes_from_pass_to_pass(
    tmp_path: Path, draw: Callable[..., list[bytes]]
) -> None:
    write_files(tmp_path, [1] * 8)
    drawn = draw(0, tmp_path, 1, 5 * 8)
    passes = {tuple(drawn[start : start + 8]) for start in range(0, 40, 8)}
    assert len(passes) > 1
    assert drawn == draw(0, tmp_path, 1, 5 * 8)


@pytest.mark.parametrize("sizes", [[1], [0, 0], [1, 0, 0]])
@pytest.mark.timeout(60)
def test_an_empty_share_is_an_error_not_an_endless_loop(
    tmp_path: Path, draw: Callable[..., list[bytes]], sizes: list[int]
) -> None:
    write_files(tmp_path, sizes)
    with pytest.raises(tf.errors.InvalidArgumentError, match="worker:1 has no record to read"):
        draw(1, tmp_path, 2, 1)


# --- the count of batches ---------------------------------------------------------------------
@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
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
    dataset = make_dataset([str(tmp_path)], PIPELINES[name], 1)
    plain = PIPELINES[name](tf.data.TFRecordDataset(str(tmp_path / "part-r-00000")))
    assert dataset.element_spec == plain.element_spec  # type: ignore[attr-defined]
    iterator = iter(dataset)
    for drawn in range(1, 20):
        next(iterator)
        assert counted() == drawn
