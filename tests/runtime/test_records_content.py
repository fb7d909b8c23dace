"""tfy://records/ on files that are compressed, and on what is wrong."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.record_files import SETS, counted, expected, mixed, read_split, spans, write_records

pytestmark = pytest.mark.timeout(180)


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
