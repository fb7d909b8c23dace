"""From a listing of the real HDFS to what the plugin counted: each record exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import LocalHadoop
from tests.runtime.input_tasks import Tasks, progress_of
from tests.tfrecords import compress, encode_records
from tests.yarn.input_folder import InputFolder, make_folder
from tfy.epoch import check_epoch

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def folder(cluster: LocalHadoop) -> Iterator[InputFolder]:
    """Five parts as Hadoop leaves them, one of them compressed, and one file of many records."""
    with make_folder(cluster) as folder:
        for number in range(4):
            folder.write(f"five/part-r-0000{number}", data=make_file(number, 100 + number))
        folder.write("five/part-r-00004", data=compress(make_file(4, 104), "gzip"))
        folder.write("five/_SUCCESS", "five/.part-r-00003.crc", data=b"x")
        folder.write("one file?/ü 1", data=make_file(9, 5001))
        yield folder


def make_file(number: int, records: int) -> bytes:
    return encode_records(f"{number}/{record}".encode() * (record % 9) for record in range(records))


@pytest.fixture
def tasks(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    return Tasks(monkeypatch)


@pytest.mark.parametrize("unequal", ["repeat", "drop"])
@pytest.mark.parametrize(
    ("pattern", "shared", "records"),
    [
        ("five/*", (2, "auto"), 510),
        ("five/", (5, "file"), 510),
        ("five/part-r-0000{0,1}", (3, "auto"), 201),
        ("five/part-*", (3, "record"), 510),
        ("one file?/*", (2, "auto"), 5001),
    ],
)
def test_each_record_is_read_once(
    tasks: Tasks,
    folder: InputFolder,
    pattern: str,
    shared: tuple[int, str],
    records: int,
    unequal: str,
) -> None:
    workers, shard = shared
    shares = folder.share(pattern, tasks=workers, shard=shard, unequal=unequal).shares
    progresses = []
    for index in range(workers):
        # One batch of all, so that nothing is dropped.
        dataset, number = tasks.dataset(index, shares, lambda records: records.batch(10_000))
        next(iter(dataset))
        progresses.append(progress_of(number))
    check = check_epoch(shares, progresses)
    assert check.text.startswith(f"each of {records:,} records read exactly once")
    assert ("left out" in check.text) == (unequal == "drop")
