"""tfy://records/ and tfy://epoch/: a share of TFRecord files, read by TensorFlow, counted by the plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Hdfs
from tests.runtime.hdfs_files import run_python
from tests.runtime.record_files import (
    MODULUS,
    SETS,
    counted,
    expected,
    mark,
    mixed,
    read_parts,
    read_split,
    spans,
    write_records,
)
from tfy.runtime.filesystem import read_counters

pytestmark = pytest.mark.timeout(180)


# --- ranges -----------------------------------------------------------------------------------
@pytest.mark.parametrize("parts", range(1, 21))
def test_ranges_give_each_record_once_and_the_sums_say_so(tf: Any, tmp_path: Path, parts: int) -> None:
    records = mixed(60)
    path = write_records(tf, str(tmp_path / "part-r-00003"), records)
    length = Path(path).stat().st_size
    number = next(SETS)
    assert read_parts(tf, path, number, parts, length) == records
    assert counted(number) == expected(number, path, len(records), length)


def test_names_are_taken_as_they_are_and_as_uris(tf: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "c=1"
    folder.mkdir(parents=True)
    path = write_records(tf, str(folder / "wäs?#%20"), [b"x"])
    for name in (path, f"file://{path}"):
        number = next(SETS)
        assert read_split(tf, name, number, 1, (0, 1 << 60)) == [b"x"]
        assert counted(number) == expected(number, name, 1, 17)


def test_records_in_records_are_one_record(tf: Any, tmp_path: Path) -> None:
    inner = Path(write_records(tf, str(tmp_path / "inner"), mixed(30))).read_bytes()
    records = [b"first", inner, inner[: len(inner) // 2], b"last"]
    path = write_records(tf, str(tmp_path / "outer"), records)
    length = Path(path).stat().st_size
    for parts in (2, 3, 5, 17):
        number = next(SETS)
        assert read_parts(tf, path, number, parts, length) == records
        assert counted(number) == expected(number, path, 4, length)


def test_a_dataset_reads_many_splits_at_once(tf: Any, tmp_path: Path) -> None:
    number, names, all_records, sums = next(SETS), [], [], 0
    for index in range(4):
        records = [bytes([index]) + record for record in mixed(40)]
        path = write_records(tf, str(tmp_path / f"part-{index}"), records)
        length = Path(path).stat().st_size
        names += [f"tfy://records/{number}/0/12/{begin}-{end}/{path}" for begin, end in spans(length, 3)]
        all_records += records
        sums += mark(path, length) - mark(path, 0)
    dataset = tf.data.Dataset.from_tensor_slices(names)
    dataset = dataset.interleave(tf.data.TFRecordDataset, cycle_length=5, num_parallel_calls=3)
    assert sorted(dataset.as_numpy_iterator()) == sorted(all_records)
    assert (counted(number).epochs, counted(number).epoch_records) == (1, 160)
    assert counted(number).coverage == sums % MODULUS


def test_an_iterator_that_is_given_up_ends_no_epoch(tf: Any, tmp_path: Path) -> None:
    number = next(SETS)
    path = write_records(tf, str(tmp_path / "file"), [b"x" * 1000] * 2000)
    name = f"tfy://records/{number}/0/1/0-{2000 * 1016}/{path}"
    assert len(list(tf.data.TFRecordDataset(name).take(10))) == 10
    assert counted(number).epochs == 0
    assert 10 <= counted(number).records < 2000
    assert len(read_split(tf, path, number, 1, (0, 2000 * 1016), epoch=1)) == 2000
    assert (counted(number).epochs, counted(number).epoch_records) == (1, 2000)


def test_a_split_that_is_missing_or_read_twice_shows(tf: Any, tmp_path: Path) -> None:
    records = mixed(50)
    path = write_records(tf, str(tmp_path / "file"), records)
    length = Path(path).stat().st_size
    right, wrong = next(SETS), next(SETS)
    first, second = spans(length, 2)
    for number, halves in ((right, [first, second]), (wrong, [first, first])):
        for span in halves:
            read_split(tf, path, number, 2, span)
    assert counted(right) == expected(right, path, len(records), length)
    assert (counted(wrong).epochs, counted(right).epochs) == (1, 1)
    assert counted(wrong).coverage != counted(right).coverage


def test_epochs_that_differ_are_counted(tf: Any, tmp_path: Path) -> None:
    path = write_records(tf, str(tmp_path / "file"), [b"a", b"b", b"c"])
    number = next(SETS)
    for epoch, end in enumerate([51, 51, 20, 51]):
        read_split(tf, path, number, 1, (0, end), epoch=epoch)
    assert (counted(number).epochs, counted(number).uneven, counted(number).epoch_records) == (4, 1, 3)


def test_a_file_without_records_has_none(tf: Any, tmp_path: Path) -> None:
    path = write_records(tf, str(tmp_path / "empty"), [])
    number = next(SETS)
    assert read_split(tf, path, number, 1, (0, 100)) == []
    assert counted(number) == expected(number, path, 0, 0)


# --- epochs -----------------------------------------------------------------------------------
def test_each_reading_of_the_epoch_is_another_one(tf: Any) -> None:
    number = next(SETS)
    texts = [tf.io.read_file(f"tfy://epoch/{number}?{salt}").numpy() for salt in "aab"]
    assert texts == [b"0" * 19 + digit for digit in (b"0", b"1", b"2")]
    tf.io.gfile.stat(f"tfy://epoch/{number}")
    assert tf.io.read_file(f"tfy://epoch/{number}").numpy() == b"0" * 19 + b"3"
    assert tf.io.read_file(f"tfy://epoch/{next(SETS)}").numpy() == b"0" * 20


def test_a_graph_that_repeats_gets_epoch_after_epoch(tf: Any) -> None:
    number = next(SETS)

    def epoch(index: Any) -> Any:
        return tf.io.read_file(tf.strings.join([f"tfy://epoch/{number}?", tf.strings.as_string(index)]))

    dataset = tf.data.Dataset.range(1).map(epoch).repeat(5)
    assert [int(text) for text in dataset.as_numpy_iterator()] == [0, 1, 2, 3, 4]


# --- processes and HDFS -----------------------------------------------------------------------
def test_a_forked_child_counts_for_itself(tf: Any, tmp_path: Path) -> None:
    path = write_records(tf, str(tmp_path / "file"), [b"x"] * 10)
    code = f"""
        import os, sys
        name = "tfy://records/0/0/1/0-999/{path}"
        tf.io.gfile.GFile("tfy://epoch/0").read()
        child = os.fork()
        count = len(list(tf.data.TFRecordDataset(name).repeat(1 if child else 2)))
        epoch = tf.io.gfile.GFile("tfy://epoch/0").read()
        counters = read_counters().input[0]
        if child:
            os.waitpid(child, 0)
        numbers = (int(epoch), counters.records, counters.epochs, counters.epoch_bytes)
        print("parent" if child else "child", *numbers)
        sys.stdout.flush()
        os._exit(0)
    """
    assert run_python(code) == "child 0 20 2 170\nparent 1 10 1 170\n"


@pytest.mark.cluster
def test_ranges_of_a_file_on_hdfs(tf: Any, hdfs: Hdfs, folder: str) -> None:
    """Several blocks of read-ahead, a record larger than a range, and names with what URIs have."""
    records = mixed(3000, largest=3_000_000)
    path = write_records(tf, f"{folder}/a b?c=1", records)
    length = tf.io.gfile.stat(path).length
    before = read_counters().bytes_read
    for parts in (1, 2, 5, 20):
        number = next(SETS)
        assert read_parts(tf, path, number, parts, length) == records
        assert counted(number) == expected(number, path, len(records), length)
    assert length * 4 <= read_counters().bytes_read - before < length * 8


@pytest.mark.cluster
def test_a_compressed_file_on_hdfs(tf: Any, folder: str) -> None:
    with tf.io.TFRecordWriter(f"{folder}/part-0.gz", "GZIP") as writer:
        for record in mixed(300):
            writer.write(record)
    number = next(SETS)
    assert read_split(tf, f"{folder}/part-0.gz", number, 1, (0, 1 << 40)) == mixed(300)
    assert (counted(number).epochs, counted(number).epoch_records) == (1, 300)
    with pytest.raises(tf.errors.NotFoundError, match="missing: "):
        read_split(tf, f"{folder}/missing", number, 1, (0, 1))
