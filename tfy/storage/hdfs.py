"""HDFS, as the client and the driver use it: small files, listings, uploads.

The training data never passes here: TensorFlow reads it through the plugin in `native/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import hdfs_native

from tfy.errors import UnreachableError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

# hdfs-native retries a refused connection 15 times over three minutes where the configuration
# says nothing, even with one NameNode only. The user's own setting wins.
_PATIENCE = {"dfs.client.failover.max.attempts": "3"}


class NotFoundError(UnreachableError):
    """There is no such file or directory."""


class Storage:
    """Files of one HDFS file system, named by full URI (`hdfs://host:port/path`)."""

    def __init__(self, default_fs: str, properties: Mapping[str, str]) -> None:
        """`properties` are those of core-site.xml and hdfs-site.xml."""
        self._default_fs = default_fs
        with _naming(default_fs):
            self._client = hdfs_native.Client(default_fs, {**_PATIENCE, **properties})

    def read(self, uri: str) -> bytes:
        """The whole file. Raises `NotFoundError` where there is none."""
        with _naming(uri), self._client.read(_path(uri)) as reader:
            return bytes(reader.read())

    def write(self, uri: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """Writes the whole file, over an existing one."""
        options = hdfs_native.WriteOptions(overwrite=True, create_parent=True, permission=mode)
        with _naming(uri), self._client.create(_path(uri), options) as writer:
            writer.write(data)

    def publish(self, uri: str, data: bytes) -> None:
        """Writes beside, then renames over: a reader sees the old file or the new, never half."""
        beside = f"{uri}.writing"
        self.write(beside, data)
        with _naming(uri):
            self._client.rename(_path(beside), _path(uri), overwrite=True)

    def upload(self, local: Path, uri: str, *, mode: int = PRIVATE_FILE) -> None:
        """Copies a local file to HDFS, in pieces."""
        options = hdfs_native.WriteOptions(overwrite=True, create_parent=True, permission=mode)
        with local.open("rb") as source, _naming(uri), self._client.create(_path(uri), options) as writer:
            while piece := source.read(4 << 20):
                writer.write(piece)

    def make_folder(self, uri: str, *, mode: int = PRIVATE_FOLDER) -> None:
        """Makes the directory and its parents."""
        with _naming(uri):
            self._client.mkdirs(_path(uri), permission=mode, create_parent=True)

    def length(self, uri: str) -> int:
        """Length of a file in bytes. Raises `NotFoundError` where there is none."""
        with _naming(uri):
            return int(self._client.get_file_info(_path(uri)).length)

    def mode(self, uri: str) -> int:
        """Permission bits of a file or directory. Raises `NotFoundError` where there is none."""
        with _naming(uri):
            return int(self._client.get_file_info(_path(uri)).permission)

    def glob(self, uri: str) -> tuple[str, ...]:
        """Full URIs of what matches a pattern, sorted."""
        with _naming(uri):
            found = self._client.glob_status(_path(uri))
        return tuple(sorted(f"{self._default_fs}{status.path}" for status in found))

    def delete(self, uri: str) -> None:
        """Removes a file, or a directory with all that is in it. Nothing there is no error."""
        with _naming(uri):
            self._client.delete(_path(uri), recursive=True)


def _path(uri: str) -> str:
    return urlsplit(uri).path or "/"


@contextmanager
def _naming(uri: str) -> Iterator[None]:
    """Every failure of the storage names what was asked for."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{uri}: no such file or directory") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnreachableError(f"{uri}: {reason}") from error
