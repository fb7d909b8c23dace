"""What the tasks' readers counted, held against the shares, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tfy.epoch import check_epoch, describe_shares, report_input
from tfy.records import InputProgress, Progress, TaskRecord
from tfy.shares import InputFile, InputShares, Split, cover, make_input_shares
from tfy.states import TaskState

FILES = [
    InputFile(path=f"hdfs://nn:8020/data/part-{number}", length=length)
    for number, length in enumerate([2000, 2020])
]


def whole(file: int, records: int | None = None) -> Split:
    return Split(file=file, start=0, end=FILES[file].length, records=records)


SHARES = make_input_shares(FILES, [[whole(0)], [whole(1)]], "worker", "repeat")
COUNTED = make_input_shares(FILES, [[whole(0, 100)], [whole(1, 101)]], "worker", "drop")


def read(*splits: Split, records: int = 100, epochs: int = 1, uneven: int = 0) -> InputProgress:
    """What a reader of these splits reports."""
    coverage = sum(cover(FILES[split.file].path, split.start, split.end) for split in splits)
    return InputProgress(
        records=records * epochs,
        epochs=epochs,
        epoch_records=records,
        epoch_bytes=sum(split.end - split.start for split in splits),
        coverage=coverage % 2**64,
        uneven=uneven,
    )


def test_each_record_once() -> None:
    check = check_epoch(SHARES, [read(whole(0)), read(whole(1), records=101, epochs=3)])
    assert (check.state, check.records) == ("exact", (100, 101))
    assert check.text == "each of 201 records read exactly once"


def test_ranges_add_up_to_whole_files() -> None:
    """Where a range begins and ends is the reader's: together they are the files."""
    first = read(whole(0), Split(file=1, start=0, end=40), records=102)
    second = read(Split(file=1, start=40, end=2020), records=99)
    assert check_epoch(SHARES, [first, second]).state == "exact"


@pytest.mark.parametrize(
    "progresses",
    [
        [read(whole(0)), read(whole(0))],
        [read(whole(0)), read(whole(0), whole(1))],
        [read(whole(0)), read()],
        [read(whole(0)), read(Split(file=1, start=0, end=2000))],
        [read(whole(0)), read(Split(file=1, start=20, end=2020))],
    ],
    ids=["one twice, one never", "one twice", "one never", "without its end", "without its beginning"],
)
def test_what_is_read_twice_or_never_is_seen(progresses: Sequence[InputProgress]) -> None:
    check = check_epoch(SHARES, progresses)
    assert check.state == "wrong"
    assert check.text.startswith("WRONG: what the tasks read does not add up")


def test_a_record_too_few_is_named_where_they_were_counted() -> None:
    check = check_epoch(COUNTED, [read(whole(0)), read(whole(1), records=100)])
    assert check.text == "WRONG: worker:1 read 100 records, its share has 101"


def test_an_epoch_that_differs_from_the_first_is_told() -> None:
    check = check_epoch(SHARES, [read(whole(0), epochs=4, uneven=2), read(whole(1), records=101)])
    assert check.text == "WRONG: worker:0 read other records in 2 of 4 epochs than in its first"


@pytest.mark.parametrize(
    "progresses",
    [[], [None, None], [read(whole(0))], [read(whole(0)), None], [read(whole(0)), InputProgress(records=50)]],
)
def test_nothing_is_claimed_before_every_task_has_completed_an_epoch(
    progresses: Sequence[InputProgress | None],
) -> None:
    check = check_epoch(SHARES, progresses)
    assert check.state == "open"
    assert "worker:1" in check.text


def test_a_rest_that_drop_leaves_unread_is_explained() -> None:
    check = check_epoch(COUNTED, [read(whole(0)), InputProgress(records=100)])
    assert check.state == "open"
    assert "`unequal: drop`" in check.text


def test_many_missing_tasks_are_folded() -> None:
    shares = replace(SHARES, shares=SHARES.shares * 6)
    assert check_epoch(shares, []).text.endswith("worker:0, worker:1, worker:2 and 9 more")


@pytest.mark.parametrize(
    ("splits", "exact", "records"),
    [(None, None, (0, 0)), ((0, 1), True, (100, 101)), ((0, 0), False, (100, 100))],
)
def test_what_the_driver_tells(
    splits: tuple[int, int] | None, exact: bool | None, records: tuple[int, int]
) -> None:
    tasks = [TaskRecord(task="ps:0", state=TaskState.RUNNING)]
    for index, split in enumerate(splits or ()):
        progress = Progress(input=read(whole(split), records=100 + split))
        tasks.append(TaskRecord(task=f"worker:{index}", state=TaskState.RUNNING, progress=progress))
    told = report_input(SHARES, tasks, describe_shares(SHARES))
    assert (told.shares, told.task_type) == ("2 files, 4.0 kB, 2 shares of 1 file", "worker")
    assert (told.exact, told.records) == (exact, records)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (COUNTED, "2 files, 4.0 kB, 201 records, 2 shares of 1 file"),
        (
            make_input_shares(FILES, [[whole(0), whole(1)]], "chief", "repeat"),
            "2 files, 4.0 kB, 1 share of 2 files",
        ),
        (
            make_input_shares(
                FILES[:1],
                [[Split(file=0, start=0, end=1000)], [Split(file=0, start=1000, end=2000)]],
                "worker",
                "repeat",
            ),
            "1 file, 2.0 kB, 2 shares by record, of 1.0 kB",
        ),
        (
            make_input_shares(
                [InputFile(path="x", length=4_200_000)] * 3,
                [
                    [Split(file=0, start=0, end=4_200_000)],
                    [Split(file=number, start=0, end=4_200_000) for number in (1, 2)],
                ],
                "worker",
                "repeat",
            ),
            "3 files, 12.6 MB, 2 shares of 1 to 2 files",
        ),
        (
            make_input_shares(
                [InputFile(path="x", length=400)], [[Split(file=0, start=0, end=400)]], "worker", "repeat"
            ),
            "1 file, 400 bytes, 1 share of 1 file",
        ),
    ],
)
def test_shares_in_words(shares: InputShares, expected: str) -> None:
    assert describe_shares(shares) == expected
