"""Shares of the input: everything once, fairly, the same each time; too little is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tfy.contract import from_json, to_json
from tfy.errors import SpecError
from tfy.shares import (
    InputFile,
    InputShares,
    RecordCounts,
    Split,
    by_record,
    cover,
    make_input_shares,
    share_out,
)

RECORD = 20


def make_files(lengths: Sequence[int]) -> list[InputFile]:
    return [
        InputFile(path=f"hdfs://nn:8020/data/part-r-{number:05d}", length=length)
        for number, length in enumerate(lengths)
    ]


def make_counts(records: Sequence[int]) -> RecordCounts:
    """Files of records that all have the same size."""
    return RecordCounts(records=tuple(records), locate=lambda _, number: number * RECORD)


def assert_each_byte_once(files: Sequence[InputFile], shares: Sequence[Sequence[Split]]) -> None:
    for number, file in enumerate(files):
        splits = [split for splits in shares for split in splits if split.file == number]
        at = 0
        for split in sorted(splits, key=lambda split: split.start):
            assert split.start == at < split.end
            at = split.end
        assert at == file.length
    covered = [cover(files[split.file].path, split.start, split.end) for splits in shares for split in splits]
    assert sum(covered) % (1 << 64) == make_input_shares(files, shares, "worker", "repeat").coverage


def sizes(shares: Sequence[Sequence[Split]]) -> list[int]:
    return [sum(split.end - split.start for split in splits) for splits in shares]


# --- which way ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("files", "tasks", "shard", "expected"),
    [
        (5, 2, "auto", False),
        (2, 2, "auto", False),
        (1, 2, "auto", True),
        (5, 2, "record", True),
        (1, 2, "file", False),
    ],
)
def test_files_are_split_where_they_are_too_few_or_job_yaml_says_so(
    files: int, tasks: int, shard: str, expected: bool
) -> None:
    assert by_record(files, tasks, shard) is expected


# --- tables ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lengths", "tasks", "expected"),
    [
        ([100] * 5, 2, [[0, 2, 4], [1, 3]]),
        ([100, 100], 2, [[0], [1]]),
        ([1, 1, 1000], 2, [[2], [0, 1]]),
        ([50, 40, 30, 20, 10], 2, [[0, 3, 4], [1, 2]]),
        ([7], 1, [[0]]),
        ([10] * 12, 12, [[task] for task in range(12)]),
    ],
)
def test_whole_files_by_bytes(lengths: list[int], tasks: int, expected: list[list[int]]) -> None:
    files = make_files(lengths)
    shares = share_out(files, tasks, "auto")
    assert [[split.file for split in splits] for splits in shares] == expected
    assert_each_byte_once(files, shares)


@pytest.mark.parametrize(
    ("lengths", "tasks", "expected"),
    [
        ([1000], 2, [500, 500]),
        ([1001], 2, [501, 500]),
        ([400, 400], 3, [267, 267, 266]),
        ([2400], 12, [200] * 12),
        ([100, 700, 100], 4, [225] * 4),
    ],
)
def test_ranges_where_files_are_too_few(lengths: list[int], tasks: int, expected: list[int]) -> None:
    files = make_files(lengths)
    shares = share_out(files, tasks, "auto")
    assert sizes(shares) == expected
    assert_each_byte_once(files, shares)


def test_five_files_are_split_where_job_yaml_asks_for_it() -> None:
    files = make_files([100, 90, 30, 10, 3])
    shares = share_out(files, 2, "record")
    assert sizes(shares) == [117, 116]
    assert_each_byte_once(files, shares)


@pytest.mark.parametrize(
    ("records", "tasks", "expected"),
    [([101], 2, [51, 50]), ([100, 101], 3, [67, 67, 67]), ([5, 1], 4, [2, 2, 1, 1]), ([24], 12, [2] * 12)],
)
def test_counted_ranges_are_cut_between_records(records: list[int], tasks: int, expected: list[int]) -> None:
    files = make_files([count * RECORD for count in records])
    shares = share_out(files, tasks, "auto", counts=make_counts(records))
    assert [sum(split.records or 0 for split in splits) for splits in shares] == expected
    assert all(split.start % RECORD == 0 for splits in shares for split in splits)
    assert_each_byte_once(files, shares)


def test_counted_whole_files_know_their_records() -> None:
    shares = share_out(make_files([2000, 2020]), 2, "auto", counts=make_counts([100, 101]))
    assert [[split.records for split in splits] for splits in shares] == [[101], [100]]
    counted = make_input_shares(make_files([2000, 2020]), shares, "worker", "drop")
    assert counted.records == 201
    assert counted.records_of_tasks() == (101, 100)


# --- compressed ---------------------------------------------------------------------------------
def test_compressed_files_stay_whole_beside_what_is_split() -> None:
    files = make_files([100, 300, 200])
    shares = share_out(files, 4, "record", compressed={0})
    assert shares[0] == (Split(file=0, start=0, end=100), Split(file=1, start=0, end=50))
    assert sizes(shares) == [150, 150, 150, 150]
    assert_each_byte_once(files, shares)


def test_a_large_compressed_file_has_a_task_for_itself() -> None:
    files = make_files([1000, 300])
    shares = share_out(files, 3, "auto", compressed={0})
    assert sizes(shares) == [1000, 150, 150]


def test_enough_compressed_files_are_shared_whole() -> None:
    files = make_files([30, 20, 10])
    assert sizes(share_out(files, 2, "record", compressed={0, 1, 2})) == [30, 30]


@pytest.mark.parametrize("shard", ["auto", "record"])
def test_too_few_compressed_files_are_refused(shard: str) -> None:
    with pytest.raises(SpecError, match=r"2 compressed files cannot be shared by 3 tasks.*cannot be split"):
        share_out(make_files([100, 100]), 3, shard, compressed={0, 1})


# --- too little ---------------------------------------------------------------------------------
def test_too_few_whole_files_are_refused() -> None:
    with pytest.raises(SpecError, match=r"input.shard: file: 1 file cannot be shared by 2 tasks"):
        share_out(make_files([1000]), 2, "file")


def test_fewer_bytes_than_records_of_that_many_tasks_are_refused() -> None:
    with pytest.raises(SpecError, match="40 bytes hold at most 2 records, too few for 3 tasks"):
        share_out(make_files([40]), 3, "auto")


def test_fewer_records_than_tasks_are_refused() -> None:
    with pytest.raises(SpecError, match=r"task 2 of 3 would have nothing to read.*hold 1, 1, 0 records"):
        share_out(make_files([2000]), 3, "auto", counts=make_counts([2]))


def test_a_compressed_file_without_records_is_refused_where_it_is_a_whole_share() -> None:
    with pytest.raises(SpecError, match="task 1 of 2 would have nothing to read"):
        share_out(make_files([100, 20]), 2, "file", counts=make_counts([5, 0]))


# --- properties ---------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(200))
def test_any_input_is_shared_out_once_and_evenly(seed: int) -> None:
    chance = random.Random(seed)
    tasks = chance.randint(1, 13)
    records = [chance.randint(1, 300) for _ in range(chance.randint(1, 30))]
    files = make_files([count * RECORD for count in records])
    counts = chance.choice([None, make_counts(records)])
    shard = chance.choice(["auto", "record"])
    if sum(records) < tasks:
        return
    shares = share_out(files, tasks, shard, counts=counts)
    assert_each_byte_once(files, shares)
    assert shares == share_out(files, tasks, shard, counts=counts)
    assert all(shares)
    if by_record(len(files), tasks, shard):
        unit = RECORD if counts else 1
        assert max(sizes(shares)) - min(sizes(shares)) <= unit
    else:
        # What the largest file alone makes unequal, nobody can level.
        assert max(sizes(shares)) - min(sizes(shares)) <= max(file.length for file in files)


# --- as JSON, and the sum -------------------------------------------------------------------------
def test_shares_travel_as_json() -> None:
    files = make_files([100, 101])
    shares = make_input_shares(files, share_out(files, 3, "auto"), "chief", "repeat")
    assert from_json(to_json(shares), InputShares) == shares
    assert shares.records is None
    assert shares.records_of_tasks() is None
    assert shares.length == 201


def test_coverage_is_fnv1a_of_path_and_offset() -> None:
    def fnv1a(data: bytes) -> int:
        state = 0xCBF29CE484222325
        for byte in data:
            state = (state ^ byte) * 0x100000001B3 % 2**64
        return state

    assert fnv1a(b"foobar") == 0x85944171F73967E8  # the published test vector
    path = "hdfs://nn/ü x"
    expected = fnv1a(path.encode() + b"\x00120") - fnv1a(path.encode() + b"\x000")
    assert cover(path, 0, 120) == expected % 2**64
    assert (cover(path, 0, 7) + cover(path, 7, 120)) % 2**64 == cover(path, 0, 120)
    assert cover(path, 5, 5) == 0
