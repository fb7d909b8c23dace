"""How many records the input's files have: counted once, and remembered on HDFS.

Under /user/<user>/.tfy/index/ lies one file for each folder that input files lie in (`choose_folders`):
closing a file takes HDFS half a second, so one for each input file would take hours. What it says of a
file counts for as long as path, length and time of change are the same.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tfy.contract import from_json, to_json
from tfy.errors import InternalError, SpecError, UnreachableError
from tfy.shares import RecordCounts
from tfy.storage.hdfs import DeniedError, FileInfo, NotFoundError, OpenFile, Storage
from tfy.storage.tfrecord import RecordIndex, count_records, find_offset
from tfy.yarn.side_by_side import side_by_side

_THREADS = 4
_SMALL_FILE_THREADS = 16
_TOLD_EVERY_S = 5.0
_MOST_FOLDERS = 256
# To step through a file of this many bytes takes seconds.
_LARGE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCounts:
    """What is remembered of the files in one folder, as it stands on HDFS."""

    folder: str
    files: tuple[RecordIndex, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFolder:
    """Where counts are remembered: a folder on `storage`, by its URI. With `keeps` false only read.

    While a count goes on, it is written every `every_s` seconds at most. Of one input folder at most
    `most_files` are remembered (some 200 bytes each), those of the present input first, then the newest.
    """

    storage: Storage
    folder: str
    keeps: bool
    every_s: float = 60.0
    most_files: int = 200_000

    def fetch(self, folder: str) -> dict[str, RecordIndex]:
        """What is remembered of the files in an input folder, by URI; nothing where it is torn."""
        try:
            found = from_json(self.storage.read(self._path(folder)), FolderCounts)
        except (NotFoundError, InternalError):
            return {}
        return {known.path: known for known in found.files} if found.folder == folder else {}

    def keep(self, folder: str, files: Iterable[RecordIndex]) -> None:
        """Remembers this of an input folder and nothing else, for whoever asks next."""
        if self.keeps:
            self.storage.make_folder(self.folder)
            found = FolderCounts(folder=folder, files=tuple(files))
            self.storage.publish(self._path(folder), to_json(found))

    def _path(self, folder: str) -> str:
        return f"{self.folder}/{hashlib.sha256(folder.encode()).hexdigest()}.json"


def count_inputs(
    system_of: Callable[[str], Storage],
    files: Sequence[FileInfo],
    index: IndexFolder,
    narrate: Callable[[str], None],
) -> tuple[RecordCounts, frozenset[int]]:
    """The records of each file, and which files are compressed, by their place in `files`.

    To locate a record reads its file again, from the last one located there on.

    Raises SpecError, which names the file, where it cannot be read, is no TFRecord file or is broken.
    """
    progress = _Progress(narrate, sum(file.length for file in files))
    memory = _Memory(index, files, narrate)

    def count(file: FileInfo) -> RecordIndex:
        known = memory.find(file)
        if known is None:
            known = _count(system_of(file.uri), file, progress)
            memory.add(known)
        else:
            progress.add(file.length)
        return known

    try:
        found = side_by_side(count, files, threads=_THREADS)
    finally:
        memory.publish()
    reached: dict[int, tuple[int, int]] = {}

    def locate(place: int, number: int) -> int:
        file, known = files[place], reached.get(place, (0, 0))
        if number >= found[place].records:
            return file.length
        if number < known[0]:
            known = (0, 0)
        if number != known[0]:
            if file.length > _LARGE:
                narrate(f"input: looking for record {number:,} of {file.uri}")
            opened = _open(system_of(file.uri), file)
            known = (number, find_offset(opened.read, found[place], number, known=known))
            # Shares are cut in the order of the records: no file is read twice.
            reached[place] = known
        return known[1]

    records = tuple(known.records for known in found)
    compressed = frozenset(place for place, known in enumerate(found) if known.format != "plain")
    return RecordCounts(records=records, locate=locate), compressed


def _count(system: Storage, file: FileInfo, progress: _Progress) -> RecordIndex:
    opened = _open(system, file)

    def read(offset: int, size: int) -> bytes:
        data = opened.read(offset, size)
        progress.add(size)
        return data

    return count_records(read, file.uri, file.length, file.modified_ms)


def _open(system: Storage, file: FileInfo) -> OpenFile:
    try:
        opened = system.open(file.uri)
    except DeniedError as error:
        raise SpecError(f"input: {file.uri} cannot be read: {error.message}") from error
    except NotFoundError as error:
        raise SpecError(f"input: {file.uri} has vanished since it was listed") from error
    if opened.length != file.length:
        raise SpecError(
            f"input: {file.uri} had {file.length:,} bytes when it was listed and has {opened.length:,} now",
            hint="it is still being written: submit once it is complete",
        )
    return opened


class _Memory:
    """What is known of the files, for several threads; what is new is written now and then and at the end."""

    def __init__(self, index: IndexFolder, files: Sequence[FileInfo], narrate: Callable[[str], None]) -> None:
        self._index = index
        self._narrate = narrate
        chosen = choose_folders([file.uri for file in files], most=_MOST_FOLDERS)
        self._folders = {file.uri: folder for file, folder in zip(files, chosen, strict=True)}
        folders = sorted(set(chosen))
        fetched = side_by_side(self._fetch, folders, threads=_SMALL_FILE_THREADS)
        self._known = dict(zip(folders, fetched, strict=True))
        self._changed: set[str] = set()
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._due = time.monotonic() + index.every_s

    def _fetch(self, folder: str) -> dict[str, RecordIndex]:
        try:
            return self._index.fetch(folder)
        except UnreachableError as error:
            self._narrate(f"input: remembered counts of records cannot be read: {error.message}")
            return {}

    def find(self, file: FileInfo) -> RecordIndex | None:
        """What is remembered of a file; None where there is nothing, or it has changed since."""
        known = self._known[self._folders[file.uri]].get(file.uri)
        if known is None or (known.length, known.modified_ms) != (file.length, file.modified_ms):
            return None
        return known

    def add(self, counted: RecordIndex) -> None:
        folder = self._folders[counted.path]
        with self._lock:
            self._known[folder][counted.path] = counted
            self._changed.add(folder)
        # One thread writes, the others go on counting.
        if time.monotonic() >= self._due and self._publishing.acquire(blocking=False):
            try:
                self.publish()
            finally:
                self._due = time.monotonic() + self._index.every_s
                self._publishing.release()

    def publish(self) -> None:
        """Writes what is new. Where that fails it is said, and does not matter otherwise."""
        with self._lock:
            new = [(folder, self._choose(folder)) for folder in sorted(self._changed)]
            self._changed.clear()
        try:
            side_by_side(lambda item: self._index.keep(*item), new, threads=_SMALL_FILE_THREADS)
        except UnreachableError as error:
            with self._lock:
                self._changed |= {folder for folder, _ in new}
            self._narrate(f"input: counts of records are not remembered: {error.message}")

    def _choose(self, folder: str) -> list[RecordIndex]:
        known = list(self._known[folder].values())
        if len(known) > self._index.most_files:
            known.sort(key=lambda index: (index.path not in self._folders, -index.modified_ms))
        return known[: self._index.most_files]


def choose_folders(uris: Sequence[str], *, most: int) -> list[str]:
    """Under which folder each file is remembered: its own; where these are more than `most`, one above."""
    folders = [_folder_of(uri) for uri in uris]
    while len(set(folders)) > most:
        folders = [_folder_of(folder) for folder in folders]
    return folders


def _folder_of(uri: str) -> str:
    return uri.rpartition("/")[0]


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
