"""How many records the input's files have: counted once, and remembered on HDFS.

Under /user/<user>/.tfy/index/ lies one small file for each input file. It counts for as long as path,
length and time of change are the same.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tfy.contract import from_json, to_json
from tfy.errors import InternalError, SpecError, UnreachableError
from tfy.shares import RecordCounts
from tfy.storage.hdfs import DeniedError, FileInfo, NotFoundError, Storage
from tfy.storage.tfrecord import RecordIndex, count_records, find_offset
from tfy.yarn.side_by_side import side_by_side

_THREADS = 4
_TOLD_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFolder:
    """Where counts are remembered: a folder on `storage`, by its URI. With `keeps` false only read."""

    storage: Storage
    folder: str
    keeps: bool

    def fetch(self, file: FileInfo) -> RecordIndex | None:
        """What is remembered of a file; None where there is nothing, or it has changed since."""
        try:
            index = from_json(self.storage.read(self._path(file)), RecordIndex)
        except (NotFoundError, InternalError):
            return None
        same = (index.path, index.length, index.modified_ms) == (file.uri, file.length, file.modified_ms)
        return index if same else None

    def keep(self, file: FileInfo, index: RecordIndex) -> None:
        """Remembers it, for whoever asks next."""
        if self.keeps:
            self.storage.publish(self._path(file), to_json(index))

    def _path(self, file: FileInfo) -> str:
        return f"{self.folder}/{hashlib.sha256(file.uri.encode()).hexdigest()}.json"


def count_inputs(
    system_of: Callable[[str], Storage],
    files: Sequence[FileInfo],
    index: IndexFolder,
    narrate: Callable[[str], None],
    *,
    with_marks: bool,
) -> tuple[RecordCounts, frozenset[int]]:
    """The records of each file, and which files are compressed, by their place in `files`.

    Where files are split (`with_marks`) their records can be located, too.

    Raises SpecError, which names the file, where it cannot be read, is no TFRecord file or is broken.
    """
    progress = _Progress(narrate, sum(file.length for file in files))
    if index.keeps:
        index.storage.make_folder(index.folder)

    def count(file: FileInfo) -> RecordIndex:
        known = index.fetch(file)
        if known is None:
            known = _count(system_of(file.uri), file, progress)
            try:
                index.keep(file, known)
            except UnreachableError as error:
                narrate(f"input: the count of {file.uri} is not remembered: {error.message}")
        else:
            progress.add(file.length)
        # A thousand marks of each of many files are a gigabyte.
        return known if with_marks else replace(known, marks=())

    found = side_by_side(count, files, threads=_THREADS)

    def locate(place: int, number: int) -> int:
        opened = system_of(files[place].uri).open(files[place].uri)
        return find_offset(opened.read, found[place], number)

    records = tuple(known.records for known in found)
    compressed = frozenset(place for place, known in enumerate(found) if known.format != "plain")
    return RecordCounts(records=records, locate=locate), compressed


def _count(system: Storage, file: FileInfo, progress: _Progress) -> RecordIndex:
    try:
        opened = system.open(file.uri)
    except DeniedError as error:
        raise SpecError(f"input: {file.uri} cannot be read: {error.message}") from error
    except NotFoundError as error:
        raise SpecError(f"input: {file.uri} has vanished since it was listed") from error

    def read(offset: int, size: int) -> bytes:
        data = opened.read(offset, size)
        progress.add(size)
        return data

    if opened.length != file.length:
        raise SpecError(
            f"input: {file.uri} had {file.length:,} bytes when it was listed and has {opened.length:,} now",
            hint="it is still being written: submit once it is complete",
        )
    return count_records(read, file.uri, file.length, file.modified_ms)


@dataclass(slots=True)
class _Progress:
    """Bytes that were read by several threads, told every few seconds."""

    narrate: Callable[[str], None]
    total: int
    done: int = 0
    told: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, size: int) -> None:
        with self.lock:
            self.done += size
            now = time.monotonic()
            if now - self.told < _TOLD_EVERY_S:
                return
            self.told = now
            percent = min(100, 100 * self.done // max(1, self.total))
            self.narrate(f"input: counting records, {percent} % of {self.total / 1e9:.1f} GB")
