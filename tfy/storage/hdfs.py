"""HDFS, as the client and the driver use it: small files, listings, uploads.

The training data never passes here: TensorFlow reads it through the plugin in `native/`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import hdfs_native

from tfy.errors import UnreachableError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
CALL_LIMIT_S = 30.0
# Whoever reads a small file waits for it in a loop, and has others to ask.
READ_LIMIT_S = 10.0
# An upload may take as long as at this rate, in bytes a second.
_SLOWEST_UPLOAD = 1 << 20

# hdfs-native retries a refused connection 15 times over three minutes where the configuration
# says nothing, even with one NameNode only. The user's own setting wins.
_PATIENCE = {"dfs.client.failover.max.attempts": "3"}

T = TypeVar("T")


class NotFoundError(UnreachableError):
    """There is no such file or directory."""


class Storage:
    """Files of one HDFS file system, named by full URI (`hdfs://host:port/path`).

    Every call is bounded, and raises `UnreachableError` that names what was asked for.
    """

    def __init__(self, default_fs: str, properties: Mapping[str, str]) -> None:
        """`properties` are those of core-site.xml and hdfs-site.xml."""
        self.default_fs = default_fs
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

        _bounded(uri, upload, CALL_LIMIT_S + local.stat().st_size / _SLOWEST_UPLOAD)

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


def _path(uri: str) -> str:
    return urlsplit(uri).path or "/"


def _options(mode: int) -> hdfs_native.WriteOptions:
    return hdfs_native.WriteOptions(overwrite=True, create_parent=True, permission=mode)


def _bounded(uri: str, call: Callable[[], T], limit_s: float) -> T:
    """The result of `call`, which hdfs-native alone would wait for without a limit, deaf to Ctrl-C.

    A call that never returns keeps its thread, which ends with the process.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # noqa: BLE001 - handed over whole to the thread that waits
            future.set_exception(error)

    threading.Thread(target=run, name="hdfs", daemon=True).start()
    try:
        return future.result(limit_s)
    except FutureTimeoutError as error:
        raise UnreachableError(f"{uri}: HDFS does not answer within {limit_s:.0f} s") from error
    except FileNotFoundError as error:
        raise NotFoundError(f"{uri}: no such file or directory") from error
    except (OSError, RuntimeError, ValueError) as error:
        # The NameNode's answer goes on with its Java stack, which hdfs-native quotes.
        reason = (str(error).strip().replace("\\n", "\n").splitlines() or [type(error).__name__])[0]
        raise UnreachableError(f"{uri}: {reason}") from error
