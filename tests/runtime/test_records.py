"""tfy://records/ and tfy://epoch/: a share of TFRecord files, read by TensorFlow, counted by the plugin."""

from __future__ import annotations

import gzip
import itertools
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Hdfs
from tests.runtime.hdfs_files import run_python
from tfy.runtime.filesystem import InputCounters, read_counters

pytestmark = pytest.mark.timeout(180)

SETS = itertools.count(time.time_ns() % 1_000_000_000)
MODULUS = 2**64


def mark(path: str, offset: int) -> int:
    """H of native/src/input.rs, by its definition: 64-bit FNV-1a."""
    number = 0xCBF29CE484222325
    for byte in f"{path}\0{offset}".encode():
        number = (number ^ byte) * 0x100000001B3 % MODULUS
    return number


def write_records(tf: Any, path: str, records: list[bytes]) -> str:
    with tf.io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path


def mixed(count: int, largest: int = 20_000) -> list[bytes]:
    """Records of no byte, of few and of many, each unlike the others."""
    chance = random.Random(count)
    sizes = [0, 0, 3, largest, *(chance.choice([0, 10, 300, 3000]) for _ in range(count - 4))]
    return [number.to_bytes(4, "big")[:size] + chance.randbytes(size) for number, size in enumerate(sizes)]


def read_split(
    tf: Any, path: str, number: int, of: int, span: tuple[int, int], epoch: int = 0
) -> list[bytes]:
    name = f"tfy://records/{number}/{epoch}/{of}/{span[0]}-{span[1]}/{path}"
    return [bytes(record) for record in tf.data.TFRecordDataset(name).as_numpy_iterator()]


def read_parts(tf: Any, path: str, number: int, parts: int, length: int) -> list[bytes]:
    """All records of all parts, in order."""
    found = (read_split(tf, path, number, parts, span) for span in spans(length, parts))
    return list(itertools.chain.from_iterable(found))


def counted(number: int) -> InputCounters:
    return next(counters for counters in read_counters().input if counters.set == number)


def spans(length: int, parts: int) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(length * part // parts for part in range(parts + 1))


def expected(number: int, path: str, records: int, length: int) -> InputCounters:
    return InputCounters(
        set=number,
        records=records,
        epochs=1,
        epoch_records=records,
        epoch_bytes=length,
        coverage=(mark(path, length) - mark(path, 0)) % MODULUS,
        uneven=0,
    )


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


# --- compressed -------------------------------------------------------------------------------
def compress(kind: str, data: bytes) -> bytes:
    half = len(data) // 2
    return {
        "gzip": gzip.compress(data),
        "members": gzip.compress(data[:half]) + gzip.compress(data[half:]),
        "zlib": zlib.compress(data),
    }[kind]


@pytest.mark.parametrize("kind", ["gzip", "members", "zlib"])
def test_compressed_files_are_known_by_their_content(tf: Any, tmp_path: Path, kind: str) -> None:
    records = mixed(200)
    plain = Path(write_records(tf, str(tmp_path / "plain"), records)).read_bytes()
    file = tmp_path / "part-0"
    file.write_bytes(compress(kind, plain))
    number = next(SETS)
    length = file.stat().st_size
    assert read_split(tf, str(file), number, 1, (0, length)) == records
    assert counted(number) == expected(number, str(file), len(records), length)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_what_tensorflow_compresses_is_read(tf: Any, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "part-0")
    with tf.io.TFRecordWriter(path, kind) as writer:
        for record in mixed(50):
            writer.write(record)
    assert read_split(tf, path, next(SETS), 1, (0, 1 << 40)) == mixed(50)


def test_a_compressed_file_has_no_second_part(tf: Any, tmp_path: Path) -> None:
    file = tmp_path / "part-0"
    file.write_bytes(gzip.compress(b"x" * 1000))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"part-0: is compressed \(gzip\)"):
        read_split(tf, str(file), next(SETS), 2, (20, 40))


@pytest.mark.parametrize("kind", ["gzip", "zlib"])
def test_a_compressed_file_that_was_cut_off_is_an_error(tf: Any, tmp_path: Path, kind: str) -> None:
    plain = Path(write_records(tf, str(tmp_path / "plain"), mixed(50))).read_bytes()
    data = compress(kind, plain)
    file = tmp_path / "part-0"
    for size in (30, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:size])
        with pytest.raises(tf.errors.DataLossError, match=f"{file}: the {kind} data ends early"):
            read_split(tf, str(file), next(SETS), 1, (0, size))


# --- what is wrong ----------------------------------------------------------------------------
@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("kind", ["header", "data", "cut", "tail", "first"])
def test_corrupt_data_is_an_error_in_one_of_the_ranges(
    tf: Any, tmp_path: Path, kind: str, parts: int
) -> None:
    file = tmp_path / "part-0"
    write_records(tf, str(file), [bytes([index]) * 100 for index in range(100)])
    data = bytearray(file.read_bytes())
    if kind in ("header", "data", "first"):
        data[{"header": 57 * 116 + 9, "data": 57 * 116 + 50, "first": 0}[kind]] ^= 1
    data = data[:-1] if kind == "cut" else data + b"tail" if kind == "tail" else data
    file.write_bytes(data)
    number = next(SETS)
    read_split(tf, str(file), number, 1, (30 * 116, 31 * 116), epoch=1)
    failed = 0
    for span in spans(len(data), parts):
        try:
            read_split(tf, str(file), number, parts, span)
        except tf.errors.DataLossError:
            failed += 1
    # TensorFlow says nothing of less than a header at the end, and it checks the data itself, after
    # the reader has handed it on.
    assert failed == (0 if kind == "tail" else 1)
    assert counted(number).epochs == (2 if kind == "data" else 1)


def test_wrong_names_are_refused(tf: Any, tmp_path: Path) -> None:
    for name in ("records/0/0/1/0-1", "records/a/0/1/0-1//x", "records/0/0/0/0-1//x", "epoch/x"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"tfy://{name}: "):
            list(tf.data.TFRecordDataset(f"tfy://{name}"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="records are read from hdfs://"):
        read_split(tf, "s3://a/b", 0, 1, (0, 1))
    with pytest.raises(tf.errors.NotFoundError, match="missing: No such file"):
        read_split(tf, str(tmp_path / "missing"), 0, 1, (0, 1))
    with pytest.raises(tf.errors.UnimplementedError, match="can only be read"):
        tf.io.write_file("tfy://epoch/0", "1")


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
