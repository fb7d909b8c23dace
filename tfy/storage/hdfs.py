"""HDFS, as the client and the driver use it: small files, listings, uploads.

The tasks' data does not pass here: TensorFlow reads it through the plugin in `native/`. Only a submit that
must know how many records there are reads it before (tfy.storage.tfrecord).

Names are URIs as Hadoop's shell takes them: never percent-encoded, `?` and `#` are letters like others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import hdfs_native

from tfy.bounded import call_within
from tfy.errors import UnreachableError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
CALL_LIMIT_S = 30.0
# Whoever reads a small file waits for it in a loop, and has others to ask.
READ_LIMIT_S = 10.0
# A pattern may list many directories.
GLOB_LIMIT_S = 120.0
# A transfer may take as long as at this rate, in bytes a second.
_SLOWEST_TRANSFER = 1 << 20

# hdfs-native retries a refused connection 15 times over three minutes where the configuration
# says nothing, even with one NameNode only. The user's own setting wins.
_PATIENCE = {"dfs.client.failover.max.attempts": "3"}

_LISTED_AT_ONCE = 1000

T = TypeVar("T")


class NotFoundError(UnreachableError):
    """There is no such file or directory."""


class DeniedError(UnreachableError):
    """The user may not do that with this file or directory."""


class InvalidNameError(UnreachableError):
    """HDFS cannot make sense of this name or pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file or directory: full URI, length in bytes, time of the last change in ms since the epoch."""

    uri: str
    length: int
    is_folder: bool
    modified_ms: int


class OpenFile:
    """A file to read in any order. It needs no closing; threads may share it."""

    def __init__(self, uri: str, reader: hdfs_native.FileReader) -> None:
        self.uri = uri
        self.length: int = len(reader)
        self._reader = reader

    def read(self, offset: int, size: int) -> bytes:
        """The `size` bytes from `offset` on, which must be there."""
        limit_s = CALL_LIMIT_S + size / _SLOWEST_TRANSFER
        return bytes(_bounded(self.uri, lambda: self._reader.read_range(offset, size), limit_s))


class Storage:
    """Files of one HDFS file system, named by full URI (`hdfs://host:port/path`).

    Every call is bounded, and raises `UnreachableError` that names what was asked for.
    """

    def __init__(self, default_fs: str, properties: Mapping[str, str]) -> None:
        """`properties` are those of core-site.xml and hdfs-site.xml."""
        self.default_fs = default_fs
        self._properties = properties
        self._client = _bounded(
            default_fs,
            lambda: hdfs_native.Client(default_fs, {**_PATIENCE, **properties}),
            CALL_LIMIT_S,
        )

    def read(self, uri: str) -> bytes:
        """The whole file. Raises `NotFoundError` where there is none."""

        def read() -> bytes:
            with self._client.read(_path(uri)) as reader:
                return bytes(reader.read())

        return _bounded(uri, read, READ_LIMIT_S)

    def write(self, uri: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """Writes the whole file, over an existing one."""

        def write() -> None:
            with self._client.create(_path(uri), _options(mode)) as writer:
                writer.write(data)

        _bounded(uri, write, CALL_LIMIT_S)

    def publish(self, uri: str, data: bytes) -> None:
        """Writes beside, then renames over: a reader sees the old file or the new, never half."""
        beside = f"{uri}.writing"
        self.write(beside, data)
        _bounded(uri, lambda: self._client.rename(_path(beside), _path(uri), overwrite=True), CALL_LIMIT_S)

    def upload(self, local: Path, uri: str, *, mode: int = PRIVATE_FILE) -> None:
        """Copies a local file to HDFS, in pieces."""

        def upload() -> None:
            with local.open("rb") as source, self._client.create(_path(uri), _options(mode)) as writer:
                while piece := source.read(4 << 20):
                    writer.write(piece)

        _bounded(uri, upload, CALL_LIMIT_S + local.stat().st_size / _SLOWEST_TRANSFER)

    def make_folder(self, uri: str, *, mode: int = PRIVATE_FOLDER) -> None:
        """Makes the directory and its parents."""
        _bounded(
            uri,
            lambda: self._client.mkdirs(_path(uri), permission=mode, create_parent=True),
            CALL_LIMIT_S,
        )

    def delete(self, uri: str) -> None:
        """Removes a file, or a directory with all that is in it. Nothing there is no error."""
        _bounded(uri, lambda: self._client.delete(_path(uri), recursive=True), CALL_LIMIT_S)

    def move(self, uri: str, target: str) -> None:
        """Renames a file or a directory; never over another. Raises `NotFoundError` where it is not there."""
        _bounded(uri, lambda: self._client.rename(_path(uri), _path(target), overwrite=False), CALL_LIMIT_S)

    def resolve(self, uri: str) -> str:
        """`uri` with its authority, and without doubled or trailing slashes: the one name of a file.

        `hdfs:///x` is on this file system. Where that is none of hdfs:// (viewfs://), it stays as it is.
        """
        root, path = _split(uri)
        if root.endswith("://") and self.default_fs.startswith(root):
            root = self.default_fs.rstrip("/")
        return root + "/" + "/".join(part for part in path.split("/") if part)

    def file_system_of(self, uri: str) -> Storage:
        """The file system that `uri` (resolved) is on: this one, or another with the same settings."""
        root, _ = _split(uri)
        return self if root == self.default_fs.rstrip("/") else Storage(root, self._properties)

    def stat(self, uri: str) -> FileInfo:
        """What there is at `uri`. Raises `NotFoundError` where there is nothing."""
        status = _bounded(uri, lambda: self._client.get_file_info(_path(uri)), READ_LIMIT_S)
        return _file_info(_split(uri)[0], status)

    def list_folder(self, uri: str) -> list[FileInfo]:
        """What is in a directory, not below it; a file alone where `uri` is one."""
        root, _ = _split(uri)
        pages = _bounded(uri, lambda: self._client.list_status(_path(uri)), CALL_LIMIT_S)
        found: list[FileInfo] = []
        # Each page by itself has a limit: a large directory takes its time.
        while page := _bounded(uri, lambda: list(islice(pages, _LISTED_AT_ONCE)), CALL_LIMIT_S):
            found += (_file_info(root, status) for status in page)
        return found

    def glob(self, pattern: str) -> list[FileInfo]:
        """What matches Hadoop's `*`, `?`, `[a-c]`, `[^a]`, `{x,y}`; a backslash makes one a plain letter."""
        root, _ = _split(pattern)
        found = _bounded(pattern, lambda: self._client.glob_status(_path(pattern)), GLOB_LIMIT_S)
        return [_file_info(root, status) for status in found]

    def open(self, uri: str) -> OpenFile:
        """Opens a file for reading: the NameNode checks that it may be read, no DataNode is asked yet."""
        return OpenFile(uri, _bounded(uri, lambda: self._client.read(_path(uri)), CALL_LIMIT_S))


def _split(uri: str) -> tuple[str, str]:
    """The file system (`hdfs://host:port`) and the path of a URI."""
    scheme, colon, rest = uri.partition("://")
    if not colon:
        return "", uri
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}", slash + path


def _path(uri: str) -> str:
    return _split(uri)[1] or "/"


def _file_info(root: str, status: hdfs_native.FileStatus) -> FileInfo:
    return FileInfo(
        uri=f"{root}{status.path}",
        length=status.length,
        is_folder=status.isdir,
        modified_ms=status.modification_time,
    )


def _options(mode: int) -> hdfs_native.WriteOptions:
    return hdfs_native.WriteOptions(overwrite=True, create_parent=True, permission=mode)


def _bounded(uri: str, call: Callable[[], T], limit_s: float) -> T:
    """The result of `call`, which hdfs-native alone would wait for without a limit, deaf to Ctrl-C."""
    try:
        return call_within(limit_s, call, thread="hdfs")
    except TimeoutError as error:
        raise UnreachableError(f"{uri}: HDFS does not answer within {limit_s:.0f} s") from error
    except FileNotFoundError as error:
        raise NotFoundError(f"{uri}: no such file or directory") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise _translate(uri, str(error).strip() or type(error).__name__) from error


def _translate(uri: str, text: str) -> UnreachableError:
    """The NameNode's answer goes on with its Java stack, which hdfs-native quotes."""
    reason = text.replace("\\n", "\n").splitlines()[0]
    if "AccessControlException" in reason:
        # As RPCError("org…AccessControlException", "Permission denied: user=…, access=…, inode=…
        _, found, denial = reason.partition("Permission denied: ")
        return DeniedError(f"{uri}: {(found + denial).replace(chr(92), '') or reason}")
    if reason.startswith("InvalidPath("):
        return InvalidNameError(f"{uri}: {reason}")
    return UnreachableError(f"{uri}: {reason}")
