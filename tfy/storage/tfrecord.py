"""TFRecord files from outside TensorFlow: is it one, how many records has it, where do they begin.

A record is its content's length (8 bytes, little-endian), the masked CRC-32C of these 8 bytes, the
content, and the content's checksum. Counting reads the lengths and steps over the contents.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tfy.errors import SpecError

Format = Literal["plain", "gzip", "zlib"]
ReadRange = Callable[[int, int], bytes]
"""Bytes of a file by offset and size, which must be there."""

HEADER = 12
_AROUND = 16  # of a record's bytes those that are not its content
CHUNK = 8 << 20
# A few seconds' reading. With marks as far apart, those of very many files are few enough to hold.
MARK_SPACING = 128 << 20
_WINDOW_BITS = {"gzip": 31, "zlib": 15}

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


class RecordFileError(SpecError):
    """The file at `path` cannot be read as records, and why."""

    def __init__(self, path: str, trouble: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path} {trouble}", hint=hint)
        self.path = path


class NotRecordsError(RecordFileError):
    """It is no TFRecord file at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIndex:
    """What counting a file gave. It holds for the file at `path` of this length and time of change.

    `marks` are (number, offset) of records that stand at least `MARK_SPACING` bytes apart, in order:
    none of most files, nor of one that is compressed, where nobody can begin to read in its middle.
    """

    path: str
    length: int
    modified_ms: int
    format: Format
    records: int
    marks: tuple[tuple[int, int], ...] = ()


def masked_crc32c(data: bytes) -> int:
    """The checksum that TFRecord files hold. For a few bytes: it goes bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def is_header(data: bytes, offset: int = 0) -> bool:
    """Whether a record begins at `offset` of `data`, by the checksum of its length."""
    if len(data) < offset + HEADER:
        return False
    (checksum,) = _CHECKSUM.unpack_from(data, offset + 8)
    return bool(masked_crc32c(data[offset : offset + 8]) == checksum)


def detect_format(path: str, head: bytes) -> Format:
    """How a file is written, by its first bytes (at least 12 of them where it has so many).

    Raises NotRecordsError where they are none of a TFRecord file.
    """
    if is_header(head):
        return "plain"
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    # RFC 1950: method 8, a window of up to 32 KiB, and the two bytes as one number are a multiple of 31.
    if len(head) >= 2 and head[0] & 0x8F == 8 and (head[0] << 8 | head[1]) % 31 == 0:
        return "zlib"
    raise NotRecordsError(
        path, f"is not a TFRecord file: it begins with {head[:HEADER].hex(' ') or 'nothing'}"
    )


def count_records(
    read: ReadRange,
    path: str,
    length: int,
    modified_ms: int,
    *,
    chunk: int = CHUNK,
    spacing: int = MARK_SPACING,
) -> RecordIndex:
    """Counts a file's records; it is read once, from its beginning to its end, `chunk` bytes at a time.

    Raises RecordFileError where it is no TFRecord file or breaks off inside a record.
    """
    form = detect_format(path, read(0, min(HEADER, length)))
    marks = _Marks(spacing)
    if form == "plain":
        records = _walk(_Source(read, path, length, chunk), 0, marks=marks)[0]
    else:
        records = _count_inflated(_inflate(_Source(read, path, length, chunk), form), path)
    return RecordIndex(
        path=path,
        length=length,
        modified_ms=modified_ms,
        format=form,
        records=records,
        marks=tuple(marks.found),
    )


def find_offset(
    read: ReadRange, index: RecordIndex, number: int, *, known: tuple[int, int] = (0, 0), chunk: int = CHUNK
) -> int:
    """Where record `number` (from 0) of a plain file begins; the file's length for the number of all.

    The file is read from its last mark on, or from `known`: number and offset of that record or one before.
    """
    if number >= index.records:
        return index.length
    known = max([known, *(mark for mark in index.marks if mark[0] <= number)])
    source = _Source(read, index.path, index.length, chunk)
    return _walk(source, known[1], limit=number - known[0])[1]


@dataclass(frozen=True, slots=True)
class _Source:
    read: ReadRange
    path: str
    length: int
    chunk: int


class _Marks:
    """Records at least `spacing` bytes apart."""

    def __init__(self, spacing: int) -> None:
        self.found: list[tuple[int, int]] = []
        self._spacing = spacing
        self._due = spacing

    def add(self, number: int, offset: int) -> None:
        if offset >= self._due:
            self.found.append((number, offset))
            self._due = offset + self._spacing


def _walk(
    source: _Source, start: int, *, limit: int | None = None, marks: _Marks | None = None
) -> tuple[int, int]:
    """Steps over records from the one at `start` on: how many, and where the next begins.

    At most `limit` of them; without one, to the file's end, which must be a record's.
    """
    unpack, count, offset, last = _LENGTH.unpack_from, 0, start, start
    stop = -1 if limit is None else limit
    while offset < source.length and count != stop:
        chunk = source.read(offset, min(source.chunk, source.length - offset))
        base, at, end = offset, 0, len(chunk) - HEADER
        # Every chunk begins with a header: whoever lost his way notices here.
        if not is_header(chunk):
            raise _broken(source.path, offset)
        if marks is not None:
            marks.add(count, offset)
        while at <= end and count != stop:
            last = at
            at += unpack(chunk, at)[0] + _AROUND
            count += 1
        last += base
        offset = base + at
    if offset > source.length:
        raise _broken(source.path, last)
    return count, offset


def _broken(path: str, offset: int, *, of: str = "") -> RecordFileError:
    return RecordFileError(
        path,
        f"is broken: no whole record begins at byte {offset:,}{of}",
        hint="was it still being written, or only copied in part?",
    )


def _inflate(source: _Source, form: Format) -> Iterator[bytes]:
    """What is in a compressed file, in pieces; gzip files may be several, one after another."""
    inflater = zlib.decompressobj(_WINDOW_BITS[form])
    try:
        for offset in range(0, source.length, source.chunk):
            data = source.read(offset, min(source.chunk, source.length - offset))
            while data:
                if inflater.eof:
                    inflater = zlib.decompressobj(_WINDOW_BITS[form])
                yield inflater.decompress(data, source.chunk)
                data = inflater.unconsumed_tail or inflater.unused_data
    except zlib.error as error:
        raise RecordFileError(source.path, f"is broken: {error}") from error
    yield inflater.flush()
    if not inflater.eof:
        raise RecordFileError(source.path, f"is broken: its {form} stream has no end")


def _count_inflated(pieces: Iterator[bytes], path: str) -> int:
    unpack, count, offset = _LENGTH.unpack_from, 0, 0
    rest, skip = b"", 0
    for piece in pieces:
        if skip >= len(piece):
            skip -= len(piece)
            offset += len(piece)
            continue
        data = rest + piece[skip:] if rest else piece[skip:]
        offset += skip
        at, end = 0, len(data) - HEADER
        if end >= 0 and not is_header(data):
            raise _broken(path, offset, of=" of what it decompresses to")
        while at <= end:
            at += unpack(data, at)[0] + _AROUND
            count += 1
        skip, rest = max(0, at - len(data)), data[at:]
        offset += min(at, len(data))
    if rest or skip:
        raise _broken(path, offset, of=" of what it decompresses to")
    return count
