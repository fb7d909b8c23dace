"""The input, listed once at submit and shared out among the tasks.

What is left out is said: names that Hadoop takes for hidden (`_…`, `.…`, `….crc`) and empty files. A
file that may not be read, or is seen to be no TFRecord file, and shares that hold nothing are refused here
and not an hour later. It is seen by a file's first 12 bytes, of those that `places_to_look_at` names; where
records are counted, every file is read to its end.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from tfy.epoch import describe_shares
from tfy.errors import SpecError
from tfy.plan_model import InputPlan
from tfy.shares import InputFile, InputShares, RecordCounts, by_record, make_input_shares, share_out
from tfy.storage.hdfs import DeniedError, FileInfo, InvalidNameError, NotFoundError, Storage
from tfy.storage.tfrecord import HEADER, NotRecordsError, RecordFileError, detect_format
from tfy.units import count_noun
from tfy.yarn.record_counts import IndexFolder, count_inputs
from tfy.yarn.side_by_side import side_by_side

_WILDCARD = re.compile(r"[*?\[{\\]")
_HIDDEN = ("_", ".")
_THREADS = 16
_TOLD_EVERY = 1000
_MOST_LOOKED_AT = 1000
_ACCEPTED = "input.paths must match TFRecord files only, plain or compressed by gzip or zlib"


class FileSystems:
    """The file systems that the input is on, each connected once."""

    def __init__(self, default: Storage) -> None:
        self.default = default
        self._known = {default.default_fs.rstrip("/"): default}

    def of(self, uri: str) -> Storage:
        """The file system of a resolved URI."""
        root = "/".join(uri.split("/", 3)[:3])
        if root not in self._known:
            self._known[root] = self.default.file_system_of(uri)
        return self._known[root]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The data files under the input's paths, each once and sorted, and what was left out, by URI."""

    files: tuple[FileInfo, ...]
    hidden: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return tuple(
            f"ignored {count_noun(len(uris), what)}, as {_name(uris[0])}"
            for uris, what in ((self.hidden, "hidden file"), (self.empty, "empty file"))
            if uris
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedInput:
    """The input as it goes with the job, and what to tell of it."""

    shares: InputShares
    notes: tuple[str, ...]

    def pairs(self) -> list[tuple[str, str]]:
        """As label and text, for the plan that is shown."""
        return [("input", describe_shares(self.shares)), *(("", note) for note in self.notes)]


def share_input(
    storage: Storage, plan: InputPlan, tasks: int, index: IndexFolder, narrate: Callable[[str], None]
) -> SharedInput:
    """Lists the input of a job and shares it out among `tasks` tasks.

    `storage` is the default file system. Reads the files whole only where records must be counted, which
    `index` remembers; else `places_to_look_at` says whose first bytes are read. Raises SpecError, which
    names the path or the setting, for what is missing, unreadable, seen to be no TFRecord file, or too
    little for so many tasks.
    """
    systems = FileSystems(storage)
    listing = list_inputs(systems, plan.paths, narrate)
    try:
        shares = _share(systems, listing, plan, tasks, index, narrate)
    except RecordFileError as error:
        hint = _ACCEPTED if isinstance(error, NotRecordsError) else error.hint
        raise SpecError(f"input: {error.message}", hint=hint) from error
    return SharedInput(shares=shares, notes=listing.notes())


def _share(
    systems: FileSystems,
    listing: Listing,
    plan: InputPlan,
    tasks: int,
    index: IndexFolder,
    narrate: Callable[[str], None],
) -> InputShares:
    ranges = by_record(len(listing.files), tasks, plan.shard)
    counts: RecordCounts | None = None
    compressed: frozenset[int] = frozenset()
    if plan.unequal == "repeat":
        formats = _look_into(systems, listing.files, places_to_look_at(listing.files, ranges=ranges), narrate)
        compressed = frozenset(place for place, form in enumerate(formats) if form not in ("", "plain"))
    else:
        counts, compressed = count_inputs(systems.of, listing.files, index, narrate)
    files = [InputFile(path=file.uri, length=file.length) for file in listing.files]
    shares = share_out(files, tasks, plan.shard, compressed=compressed, counts=counts)
    return make_input_shares(files, shares, plan.task_type, plan.unequal)


def list_inputs(systems: FileSystems, paths: Sequence[str], narrate: Callable[[str], None]) -> Listing:
    """The data files that `paths` name: files, directories with all that is below, patterns of Hadoop's.

    Raises SpecError where a path matches no data file, or may not be listed.
    """
    files: dict[str, FileInfo] = {}
    hidden: dict[str, None] = {}
    empty: dict[str, None] = {}
    for path in paths:
        listing = _list_path(systems, path)
        if not listing.files:
            ignored = f" ({'; '.join(listing.notes())})" if listing.notes() else ""
            raise SpecError(
                f"input.paths: {path!r} matches no data file{ignored}",
                hint="names that begin with _ or . or end in .crc do not count, as in Hadoop",
            )
        files |= {_one_name(file.uri): file for file in listing.files}
        hidden |= dict.fromkeys(listing.hidden)
        empty |= dict.fromkeys(listing.empty)
        if len(files) >= _TOLD_EVERY:
            narrate(f"input: {len(files):,} files found")
    return Listing(
        files=tuple(sorted(files.values(), key=lambda file: file.uri)),
        hidden=tuple(hidden),
        empty=tuple(empty),
    )


def _one_name(uri: str) -> str:
    """8020 is the port of a NameNode that is named without one."""
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.lower().removesuffix(':8020')}{slash}{path}"


def _list_path(systems: FileSystems, path: str) -> Listing:
    resolved = systems.default.resolve(path)
    if "://" not in resolved or "///" in resolved:
        raise SpecError(
            f"input.paths: {path!r} does not say which file system, and the default one "
            f"({systems.default.default_fs}) is of another kind",
            hint="write it in full, as hdfs://nameservice/data or viewfs://cluster/data",
        )
    try:
        return _expand(systems.of(resolved), resolved)
    except DeniedError as error:
        raise SpecError(f"input.paths: {path!r} cannot be listed: {error.message}") from error
    except InvalidNameError as error:
        raise SpecError(f"input.paths: {path!r} is no pattern of Hadoop's: {error.message}") from error


def _expand(system: Storage, resolved: str) -> Listing:
    """What a path names, where directories stand for all below them."""
    files: list[FileInfo] = []
    hidden: list[str] = []
    folders: list[FileInfo] = []

    def sort_in(found: Iterable[FileInfo], names: Callable[[FileInfo], Iterable[str]]) -> None:
        for info in found:
            if any(_is_hidden(name) for name in names(info)):
                hidden.append(info.uri)
            else:
                (folders if info.is_folder else files).append(info)

    plain = _plain_parts(resolved)
    sort_in(_match(system, resolved), lambda info: info.uri.split("/")[plain:])
    while folders:
        # One directory after another would be a round trip each.
        listed = side_by_side(lambda info: system.list_folder(info.uri), folders, threads=_THREADS)
        folders = []
        sort_in((info for page in listed for info in page), lambda info: [_name(info.uri)])
    return Listing(
        files=tuple(info for info in files if info.length),
        hidden=tuple(sorted(hidden)),
        empty=tuple(sorted(info.uri for info in files if not info.length)),
    )


def _plain_parts(resolved: str) -> int:
    """How many parts of a path are the user's own words: those before its first wildcard, never the last."""
    parts = resolved.split("/")
    wild = [place for place, part in enumerate(parts) if _WILDCARD.search(part)]
    return min([*wild, len(parts) - 1])


def _match(system: Storage, resolved: str) -> list[FileInfo]:
    """What matches as a pattern, and else what has this very name."""
    trouble = None
    if _WILDCARD.search(resolved):
        try:
            matches = system.glob(resolved)
        except InvalidNameError as error:
            matches, trouble = [], error
        if matches:
            return matches
    try:
        return [system.stat(resolved)]
    except NotFoundError:
        if trouble is not None:
            raise trouble from None
        return []


def _is_hidden(name: str) -> bool:
    return name.startswith(_HIDDEN) or name.endswith(".crc")


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def places_to_look_at(files: Sequence[FileInfo], *, ranges: bool) -> Set[int]:
    """Which files' first bytes are read, by their place in `files`.

    All where they are split (`ranges`) or at most 1000; else the first, the last and the largest ones,
    1000 in all or a few less.
    """
    if ranges or len(files) <= _MOST_LOOKED_AT:
        return frozenset(range(len(files)))
    places = range(len(files))
    largest = heapq.nlargest(_MOST_LOOKED_AT - 2, places, key=lambda place: files[place].length)
    return {0, places[-1], *largest}


def _look_into(
    systems: FileSystems, files: Sequence[FileInfo], looked_at: Set[int], narrate: Callable[[str], None]
) -> list[str]:
    """The format of each file in `looked_at`, else ""; of the others only whether they may be read.

    Opening asks the NameNode alone; the first bytes are a DataNode's.
    """

    def look(place: int) -> str:
        file = files[place]
        try:
            opened = systems.of(file.uri).open(file.uri)
            if place not in looked_at:
                return ""
            return detect_format(file.uri, opened.read(0, min(HEADER, opened.length)))
        except DeniedError as error:
            raise SpecError(f"input: {file.uri} cannot be read: {error.message}") from error
        except NotFoundError as error:
            raise SpecError(f"input: {file.uri} has vanished since it was listed") from error

    def tell(done: int) -> None:
        if done % _TOLD_EVERY == 0:
            narrate(f"input: {done:,} of {len(files):,} files looked at")

    return side_by_side(look, range(len(files)), threads=_THREADS, tell=tell)
