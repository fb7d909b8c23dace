"""Who reads what of the input: decided once at submit, shipped to every task, checked by what was read.

The client lists the files, `share_out` gives each sharing task its splits, and the result travels
as `input.json`. A split is a range of bytes of one file: its records are those that begin in it.
What the tasks' readers then counted is held against it by `check_epoch`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from tfy.errors import SpecError
from tfy.units import count_noun

# A record is at least its length, two checksums and no byte of content.
SMALLEST_RECORD = 16

# Of the sums of what `cover` gives.
MODULUS = 1 << 64

_FNV_BASIS = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file of the input: its full URI with authority, and its length in bytes."""

    path: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The records of a file (by its place in the list of files) that begin in bytes `start` to `end`.

    `records` is how many they are, None where they were not counted.
    """

    file: int
    start: int
    end: int
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputShares:
    """The input as shared out: `shares` has the splits of each task of `task_type`, by its index.

    `unequal` is what job.yaml says (repeat, drop or refuse), `records` how many there are in all,
    None where they were not counted. `coverage` is what the tasks' own must add up to in an epoch.
    """

    files: tuple[InputFile, ...]
    shares: tuple[tuple[Split, ...], ...]
    task_type: str
    unequal: str
    records: int | None
    coverage: int

    @property
    def length(self) -> int:
        """All bytes of all files."""
        return sum(file.length for file in self.files)

    def records_of_tasks(self) -> tuple[int, ...] | None:
        """How many records each task has, by its index; None where they were not counted."""
        if self.records is None:
            return None
        return tuple(sum(split.records or 0 for split in splits) for splits in self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReport:
    """How the input is shared out, and what the driver holds of what was read (tfy.epoch)."""

    shares: str
    task_type: str
    epoch: str
    records: tuple[int, ...]
    """Of each task's first complete epoch by its index, 0 where it has none."""
    exact: bool | None
    """Whether each record was read exactly once; None while that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCounts:
    """How many records each file has, and where they begin.

    `locate` gives the offset of a record by the file's place in the list and the record's
    number in the file, from 0; for the number of all records the file's length.
    """

    records: tuple[int, ...]
    locate: Callable[[int, int], int]


def make_input_shares(
    files: Sequence[InputFile], shares: Sequence[Sequence[Split]], task_type: str, unequal: str
) -> InputShares:
    """The shares with their sums."""
    counts = [split.records for splits in shares for split in splits]
    known = [count for count in counts if count is not None]
    return InputShares(
        files=tuple(files),
        shares=tuple(tuple(splits) for splits in shares),
        task_type=task_type,
        unequal=unequal,
        records=sum(known) if len(known) == len(counts) else None,
        coverage=sum(cover(file.path, 0, file.length) for file in files) % MODULUS,
    )


def cover(path: str, start: int, end: int) -> int:
    """What a reader of bytes `start` to `end` adds to its coverage, modulo 2**64.

    Ranges that join add up to that of the whole, as H(path, end) - H(path, start) with H = FNV-1a of
    64 bits over the path, a zero byte and the offset in decimal digits. What is read twice or never
    does not cancel out.
    """
    before = _fnv1a(path.encode() + b"\0", _FNV_BASIS)
    return (_fnv1a(str(end).encode(), before) - _fnv1a(str(start).encode(), before)) % MODULUS


def _fnv1a(data: bytes, state: int) -> int:
    for byte in data:
        state = (state ^ byte) * _FNV_PRIME & (MODULUS - 1)
    return state


def by_record(files: int, tasks: int, shard: str) -> bool:
    """Whether files are split: where job.yaml says so, or leaves it to us and files are too few."""
    return shard == "record" or (shard == "auto" and files < tasks)


def share_out(
    files: Sequence[InputFile],
    tasks: int,
    shard: str,
    *,
    compressed: Set[int] = frozenset(),
    counts: RecordCounts | None = None,
) -> tuple[tuple[Split, ...], ...]:
    """The splits of each of `tasks` tasks: together every record of every file once.

    Whole files, balanced by bytes, or ranges of all files, balanced by records where there are
    `counts` and by bytes where not (`by_record` says which). Files in `compressed` (by their place in
    the list) stay whole. The same arguments give the same shares.

    Raises SpecError, which names the setting, where a task would get nothing.
    """
    if not by_record(len(files), tasks, shard):
        if len(files) < tasks:
            raise SpecError(
                f"input.shard: file: {count_noun(len(files), 'file')} cannot be shared by {tasks} tasks",
                hint="`shard: auto` splits files where they are fewer than tasks",
            )
        pieces = _share_files([file.length for file in files], range(len(files)), tasks)
    elif len(compressed) == len(files) < tasks:
        raise SpecError(
            f"input: {count_noun(len(files), 'compressed file')} cannot be shared by {tasks} tasks, "
            "since a gzip or zlib file cannot be split",
            hint=f"write at least {tasks} files, or write them without compression",
        )
    else:
        if counts is None and not compressed:
            _check_bytes_suffice(sum(file.length for file in files), tasks)
        pieces = _share_ranges([file.length for file in files], tasks, compressed, counts)
    shares = tuple(_make_splits(piece, counts) for piece in pieces)
    _check_nobody_is_empty(files, shares, counts)
    return shares


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a file, in bytes, or in records where these are counted and the file is split."""

    file: int
    start: int
    end: int
    in_records: bool = False


def _share_files(sizes: Sequence[int], files: Sequence[int], tasks: int) -> list[list[_Piece]]:
    """The largest file first, each to the task that has least: nobody stays without one."""
    shares: list[list[_Piece]] = [[] for _ in range(tasks)]
    loads = [(0, task) for task in range(tasks)]
    for file in sorted(files, key=lambda file: (-sizes[file], file)):
        load, least = loads[0]
        shares[least].append(_Piece(file, 0, sizes[file]))
        heapq.heapreplace(loads, (load + sizes[file], least))
    return [sorted(pieces, key=lambda piece: piece.file) for pieces in shares]


def _share_ranges(
    lengths: Sequence[int], tasks: int, compressed: Set[int], counts: RecordCounts | None
) -> list[list[_Piece]]:
    """Compressed files whole; then the others as one long line, cut so that all tasks come level."""
    shares = _share_files(lengths, sorted(compressed), tasks)
    sizes = lengths if counts is None else counts.records
    loads = [sum(sizes[piece.file] for piece in pieces) for pieces in shares]
    line = [(file, size) for file, size in enumerate(sizes) if file not in compressed and size]
    amounts = _level(loads, sum(size for _, size in line))
    place, at = 0, 0
    for task, amount in enumerate(amounts):
        while amount:
            file, size = line[place]
            taken = min(amount, size - at)
            shares[task].append(_Piece(file, at, at + taken, in_records=counts is not None))
            at, amount = at + taken, amount - taken
            if at == size:
                place, at = place + 1, 0
    return shares


def _level(loads: Sequence[int], amount: int) -> list[int]:
    """How `amount` is added to `loads` so that the least loaded come level; they differ by one at most."""
    order = sorted(range(len(loads)), key=lambda task: (loads[task], task))
    raised = len(order)
    while (
        raised > 1
        and sum(loads[task] for task in order[:raised]) + amount < raised * loads[order[raised - 1]]
    ):
        raised -= 1
    level, rest = divmod(sum(loads[task] for task in order[:raised]) + amount, raised)
    added = [0] * len(loads)
    for place, task in enumerate(order[:raised]):
        added[task] = level - loads[task] + (place < rest)
    return added


def _make_splits(pieces: Sequence[_Piece], counts: RecordCounts | None) -> tuple[Split, ...]:
    splits = []
    for piece in pieces:
        if not piece.in_records or counts is None:
            records = None if counts is None else counts.records[piece.file]
            splits.append(Split(file=piece.file, start=piece.start, end=piece.end, records=records))
            continue
        start, end = (counts.locate(piece.file, number) for number in (piece.start, piece.end))
        splits.append(Split(file=piece.file, start=start, end=end, records=piece.end - piece.start))
    return tuple(splits)


def _check_bytes_suffice(length: int, tasks: int) -> None:
    most = length // SMALLEST_RECORD
    if most < tasks:
        raise SpecError(
            f"input: {length:,} bytes hold at most {count_noun(most, 'record')}, too few for {tasks} tasks"
        )


def _check_nobody_is_empty(
    files: Sequence[InputFile], shares: Sequence[Sequence[Split]], counts: RecordCounts | None
) -> None:
    if counts is not None:
        held = [sum(split.records or 0 for split in splits) for splits in shares]
    else:
        # A range of bytes may still hold no record's beginning: that the task says itself.
        held = [sum(split.end - split.start for split in splits) for splits in shares]
    if 0 in held:
        unit = "bytes" if counts is None else "records"
        raise SpecError(
            f"input: task {held.index(0)} of {len(held)} would have nothing to read: the tasks' shares of "
            f"{count_noun(len(files), 'file')} hold {', '.join(map(str, held))} {unit}",
            hint="use fewer tasks, or write more files; a compressed file cannot be split",
        )
