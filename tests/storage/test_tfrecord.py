"""Counting records, and where they begin, held against files that TensorFlow wrote and reads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.tfrecords import compress, encode_records, reader_of
from tfy.storage.tfrecord import (
    CHUNK,
    NotRecordsError,
    RecordFileError,
    RecordIndex,
    count_records,
    detect_format,
    find_offset,
    masked_crc32c,
)


def count(data: bytes, chunk: int = CHUNK) -> RecordIndex:
    return count_records(reader_of(data), "hdfs://nn/x", len(data), 7, chunk=chunk)


# --- what TensorFlow writes -----------------------------------------------------------------------
@pytest.mark.parametrize(("option", "form"), [("", "plain"), ("GZIP", "gzip"), ("ZLIB", "zlib")])
@pytest.mark.parametrize("sizes", [[0], [5] * 3, [0, 1, 30, 500, 0, 0, 120], list(range(200))])
def test_files_of_tensorflow_are_counted(tmp_path: Path, option: str, form: str, sizes: list[int]) -> None:
    tf = pytest.importorskip("tensorflow")
    path = tmp_path / "file"
    with tf.io.TFRecordWriter(str(path), options=option) as writer:
        for size in sizes:
            writer.write(b"x" * size)
    index = count(path.read_bytes())
    assert (index.records, index.format) == (len(sizes), form)
    assert index == RecordIndex(
        path="hdfs://nn/x",
        length=path.stat().st_size,
        modified_ms=7,
        format=index.format,
        records=len(sizes),
    )


def test_the_checksum_is_that_of_tensorflow() -> None:
    assert masked_crc32c((5).to_bytes(8, "little")) == int.from_bytes(b"\xea\xb2\x04\x3e", "little")
    assert masked_crc32c(bytes(8)) == int.from_bytes(b"\x29\x03\x98\x07", "little")


def test_the_files_of_these_tests_are_what_tensorflow_reads(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    contents = [b"", b"a", b"b" * 300]
    (tmp_path / "file").write_bytes(encode_records(contents))
    assert list(tf.data.TFRecordDataset(str(tmp_path / "file")).as_numpy_iterator()) == contents


# --- formats ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["plain", "gzip", "zlib"])
@pytest.mark.parametrize("size", [0, 1, 0x78, 0x8B1F, 100_000])
def test_formats_are_told_by_the_first_bytes(form: str, size: int) -> None:
    """A record of 0x78 bytes begins as a zlib stream does, one of 0x8b1f bytes as a gzip file."""
    assert detect_format("x", compress(encode_records([b"x" * size]), form)[:12]) == form


@pytest.mark.parametrize(
    "head", [b"", b"PAR1", b"image,label\n", bytes(12), b"\x1f", b"\x05" + bytes(11), b"\x88\x1c"]
)
def test_other_files_are_refused_by_name(head: bytes) -> None:
    with pytest.raises(
        NotRecordsError, match=r"^hdfs://nn/data.csv is not a TFRecord file: it begins"
    ) as raised:
        detect_format("hdfs://nn/data.csv", head)
    # Which setting named the file is not known down here.
    assert (raised.value.path, raised.value.hint) == ("hdfs://nn/data.csv", None)


# --- offsets ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("records", [1, 2, 1000, 5000])
def test_offsets_are_found(records: int) -> None:
    chance = random.Random(records)
    contents = [b"x" * chance.randint(0, 40) for _ in range(records)]
    data = encode_records(contents)
    index = count(data)
    assert index.records == records
    offsets = [0]
    for content in contents:
        offsets.append(offsets[-1] + 16 + len(content))
    known = (0, 0)
    for number in sorted({0, 1, records // 3, records // 2, records - 1, records, records + 9}):
        expected = offsets[min(number, records)]
        assert find_offset(reader_of(data), index, number, chunk=512) == expected
        assert find_offset(reader_of(data), index, number, known=known, chunk=512) == expected
        known = (number, expected)


def test_large_files_have_marks_far_apart() -> None:
    data = encode_records([b"x" * (number % 30) for number in range(1000)])
    index = count_records(reader_of(data), "x", len(data), 7, chunk=64, spacing=5000)
    offsets = [offset for _, offset in index.marks]
    assert 3 <= len(offsets) <= len(data) / 5000
    assert all(5000 <= after - before <= 5200 for before, after in zip([0, *offsets], offsets, strict=False))
    read = []

    def record(offset: int, size: int) -> bytes:
        read.append(offset)
        return data[offset : offset + size]

    for number, begin in (index.marks[0][0] - 1, 0), (index.marks[1][0] + 7, offsets[1]):
        read.clear()
        expected = len(encode_records([b"x" * (place % 30) for place in range(number)]))
        assert find_offset(record, index, number, chunk=64) == expected
        assert min(read) == begin
    assert find_offset(record, index, index.marks[1][0], chunk=64) == offsets[1]
    # Of most files they are none, and all files' counts are held at once.
    assert count(data).marks == ()


def test_an_offset_is_looked_for_from_a_known_record_on() -> None:
    data = encode_records([b"x" * 10] * 100)
    read = []

    def record(offset: int, size: int) -> bytes:
        read.append(offset)
        return data[offset : offset + size]

    index = count(data)
    assert find_offset(record, index, 90, known=(60, 60 * 26), chunk=64) == 90 * 26
    assert min(read) == 60 * 26


@pytest.mark.parametrize("form", ["plain", "gzip", "zlib"])
@pytest.mark.parametrize("seed", range(30))
def test_pieces_may_end_anywhere(form: str, seed: int) -> None:
    """Headers across the ends of pieces, contents larger than a piece."""
    chance = random.Random(seed)
    contents = [bytes(chance.randint(0, chance.choice([3, 60, 300]))) for _ in range(chance.randint(1, 40))]
    data = encode_records(contents)
    index = count(compress(data, form), chunk=64)
    assert (index.records, index.format) == (len(contents), form)
    if form == "plain":
        number = chance.randint(0, len(contents))
        expected = len(encode_records(contents[:number]))
        assert find_offset(reader_of(data), index, number) == expected


def test_large_contents_are_stepped_over() -> None:
    data = encode_records([b"x" * 1_000_000, b"y", b"z" * 1_000_000])
    read = []

    def record(offset: int, size: int) -> bytes:
        read.append(size)
        return data[offset : offset + size]

    assert count_records(record, "x", len(data), 7, chunk=1024).records == 3
    assert sum(read) <= 3 * 1024 + 12


def test_gzip_files_of_several_members_are_one(tmp_path: Path) -> None:
    halves = [encode_records([b"a", b"b"]), encode_records([b"c"])]
    assert count(b"".join(compress(half, "gzip") for half in halves)).records == 3


def test_a_compressed_file_may_hold_nothing() -> None:
    assert count(compress(b"", "gzip")).records == 0


# --- broken -------------------------------------------------------------------------------------------
RECORDS = encode_records([b"a" * 10, b"b" * 10, b"c" * 10])


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (RECORDS[:-1], "52"),
        (RECORDS[:-20], "52"),
        (RECORDS + b"\0" * 5, "78"),
        (RECORDS[:53], "52"),
        (RECORDS[:26] + b"\xff" * 8 + RECORDS[34:], "26"),
    ],
)
def test_a_file_that_breaks_off_is_named_with_the_place(data: bytes, offset: str) -> None:
    with pytest.raises(
        RecordFileError, match=rf"^hdfs://nn/x is broken: no whole record begins at byte {offset}"
    ):
        count(data)


def test_a_wrong_length_does_not_lead_astray() -> None:
    data = bytearray(encode_records([b"a" * 10] * 50))
    data[26] = 20
    with pytest.raises(RecordFileError, match="is broken"):
        count(bytes(data), chunk=64)


@pytest.mark.parametrize("form", ["gzip", "zlib"])
@pytest.mark.parametrize("broken", ["cut", "flipped", "cut inside"])
def test_a_broken_compressed_file_is_named(form: str, broken: str) -> None:
    data = {
        "cut": compress(RECORDS, form)[:-6],
        "flipped": compress(RECORDS, form)[:-3] + b"\0\1\2",
        "cut inside": compress(RECORDS[:-3], form),
    }[broken]
    with pytest.raises(RecordFileError, match=r"^hdfs://nn/x is broken"):
        count(data)
