"""Was each record read exactly once? What the tasks' readers counted, held against the shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tfy.contract import task_name
from tfy.records import InputProgress, TaskRecord
from tfy.shares import MODULUS, InputReport, InputShares
from tfy.units import count_noun


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCheck:
    """What is known of the first epoch: `open` until every task has read its share to the end.

    `records` are those of each task by its index, 0 where it has not completed an epoch.
    """

    state: Literal["open", "exact", "wrong"]
    text: str
    records: tuple[int, ...]


def check_epoch(shares: InputShares, progresses: Sequence[InputProgress | None]) -> EpochCheck:
    """Holds the first complete epoch of each task (by its index) against the shares.

    Nothing is claimed before every task has completed one. What is promised is meant for tasks that ran
    without a fault: one that started again has an epoch of its own.
    """
    names = [task_name(shares.task_type, index) for index in range(len(shares.shares))]
    found = [progress or InputProgress() for progress in progresses]
    found += [InputProgress()] * (len(names) - len(found))
    records = tuple(progress.epoch_records for progress in found)
    missing = [name for name, progress in zip(names, found, strict=True) if not progress.epochs]
    if missing:
        rest = ", which `unequal: drop` may leave unread in part" if shares.unequal == "drop" else ""
        text = f"not checked: no complete pass over its share yet by {_listed(missing)}{rest}"
        return EpochCheck(state="open", text=text, records=records)
    faults = _find_faults(shares, found, names)
    if faults:
        return EpochCheck(state="wrong", text=f"WRONG: {'; '.join(faults)}", records=records)
    text = f"each of {sum(records):,} records read exactly once"
    if shares.unequal == "drop":
        text += " (batches that other tasks have no match for were left out after that)"
    return EpochCheck(state="exact", text=text, records=records)


def _find_faults(shares: InputShares, found: Sequence[InputProgress], names: Sequence[str]) -> list[str]:
    faults = []
    if sum(progress.coverage for progress in found) % MODULUS != shares.coverage:
        faults.append("what the tasks read does not add up to the input: something was read twice or never")
    expected = shares.records_of_tasks()
    if expected is not None:
        faults += [
            f"{name} read {progress.epoch_records:,} records, its share has {count:,}"
            for name, progress, count in zip(names, found, expected, strict=True)
            if progress.epoch_records != count
        ]
    faults += [
        f"{name} read other records in {progress.uneven} of {progress.epochs} epochs than in its first"
        for name, progress in zip(names, found, strict=True)
        if progress.uneven
    ]
    return faults


def report_input(shares: InputShares, tasks: Sequence[TaskRecord], described: str) -> InputReport:
    """What the driver tells of a job's input, from the records of all tasks.

    `described` is what `describe_shares` says of it, which takes a while for many files.
    """
    read = {record.task: record.progress.input for record in tasks}
    names = [task_name(shares.task_type, index) for index in range(len(shares.shares))]
    check = check_epoch(shares, [read.get(name) for name in names])
    return InputReport(
        shares=described,
        task_type=shares.task_type,
        epoch=check.text,
        records=check.records,
        exact={"open": None, "exact": True, "wrong": False}[check.state],
    )


def describe_shares(shares: InputShares) -> str:
    """As `8 files, 4.2 MB, 2 shares of 4 files`."""
    parts = [count_noun(len(shares.files), "file"), _size(shares.length)]
    if shares.records is not None:
        parts.append(count_noun(shares.records, "record"))
    count = count_noun(len(shares.shares), "share")
    if _whole_files(shares):
        each = [len(splits) for splits in shares.shares]
        low, high = min(each), max(each)
        parts.append(f"{count} of {count_noun(high, 'file') if low == high else f'{low} to {high} files'}")
    else:
        parts.append(f"{count} by record, of {_between_sizes(shares)}")
    return ", ".join(parts)


def _whole_files(shares: InputShares) -> bool:
    return all(
        split.start == 0 and split.end == shares.files[split.file].length
        for splits in shares.shares
        for split in splits
    )


def _between_sizes(shares: InputShares) -> str:
    held = [sum(split.end - split.start for split in splits) for splits in shares.shares]
    low, high = _size(min(held)), _size(max(held))
    return low if low == high else f"{low} to {high}"


def _size(length: int) -> str:
    """Bytes as a person reads them, 1000-based: `4.2 MB`."""
    size = float(length)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 999.95 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{length} bytes"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
