"""Shares of local TFRecord files, and what tasks read of them, for tests of `tfy.runtime.input`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.tfrecords import compress, encode_records, reader_of
from tfy.shares import (
    InputFile,
    InputShares,
    RecordCounts,
    make_input_shares,
    share_out,
)
from tfy.storage.tfrecord import count_records, find_offset


def write_files(folder: Path, sizes: Sequence[int], *, form: str = "plain") -> list[set[bytes]]:
    """One TFRecord file a size, which is its number of records; the records of each."""
    folder.mkdir(exist_ok=True)
    contents = [
        [f"{number}-{record}".encode() for record in range(size)] for number, size in enumerate(sizes)
    ]
    for number, records in enumerate(contents):
        (folder / f"part-r-{number:05d}").write_bytes(compress(encode_records(records), form))
    return [set(records) for records in contents]


def make_shares(
    folder: Path, tasks: int, *, shard: str = "auto", unequal: str = "repeat", task_type: str = "worker"
) -> InputShares:
    """As a submit makes them, of all files in `folder` that hold a byte."""
    paths = [path for path in sorted(folder.iterdir()) if path.stat().st_size]
    files = [InputFile(path=str(path), length=path.stat().st_size) for path in paths]
    reads = [reader_of(path.read_bytes()) for path in paths]
    indexes = [
        count_records(read, file.path, file.length, 0) for read, file in zip(reads, files, strict=True)
    ]

    def locate(place: int, number: int) -> int:
        return find_offset(reads[place], indexes[place], number)

    counts = RecordCounts(records=tuple(index.records for index in indexes), locate=locate)
    compressed = frozenset(place for place, index in enumerate(indexes) if index.format != "plain")
    shares = share_out(
        files, tasks, shard, compressed=compressed, counts=None if unequal == "repeat" else counts
    )
    return make_input_shares(files, shares, task_type, unequal)
