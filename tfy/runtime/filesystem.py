"""`hdfs://`, `viewfs://` and `tfy://` inside TensorFlow: the plugin in `native/`, from Python.

The plugin is a shared library beside this module; it has no Python in it, so one file serves
every Python version. Its counters belong to a process, and a forked child's start at zero.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from tfy.errors import InternalError, StartError

# The first of the plugin's schemes: TensorFlow registers in order and names where it stopped.
OWN_SCHEME = "tfy"
LIBRARY_PATTERN = "_hdfs*.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCounters:
    """What `tfy://records/` has read in this process for one set, a number that the reader's user gave.

    `records` are all; `epochs` those passes in which every split was read to its end. `epoch_records`,
    `epoch_bytes` and `coverage` (a sum modulo 2**64 over the splits, native/src/input.rs) are of the first
    of them, and `uneven` tells how many others differed from it.
    """

    set: int
    records: int
    epochs: int
    epoch_records: int
    epoch_bytes: int
    coverage: int
    uneven: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What TensorFlow in this process has read from HDFS, written to it, and counted by `tfy://count/`.

    `input` has one entry for each set, in the order of their numbers.
    """

    bytes_read: int
    reads: int
    bytes_written: int
    writes: int
    counts: Mapping[str, int]
    input: tuple[InputCounters, ...] = ()


def plugin_path() -> Path:
    """Where the plugin's shared library is; `StartError` where it was not built."""
    folder = Path(__file__).parent
    found = sorted(folder.glob(LIBRARY_PATTERN), key=lambda path: path.stat().st_mtime)
    if not found:
        raise StartError(
            f"the hdfs:// plugin for TensorFlow is missing: there is no {LIBRARY_PATTERN} in {folder}",
            hint="install tfy again where Rust's cargo is on the PATH: pip install .",
        )
    return found[-1]


def hook_path() -> Path:
    """The folder to put on a program's PYTHONPATH, so that it gets `hdfs://` unchanged."""
    return Path(__file__).parent / "hook"


def register() -> None:
    """Makes TensorFlow in this process know the plugin's schemes. May be called again.

    Imports TensorFlow. Raises `StartError` where the plugin is missing, does not load here, or
    where another library has taken `hdfs://` before.
    """
    import tensorflow as tf

    path = plugin_path()
    try:
        tf.experimental.register_filesystem_plugin(str(path))
    except tf.errors.AlreadyExistsError as error:
        if f" {OWN_SCHEME} " not in error.message:
            raise StartError(f"another library has registered hdfs:// first: {error.message}") from error
    except tf.errors.OpError as error:
        raise StartError(
            f"the hdfs:// plugin {path} does not load: {error.message}",
            hint="it was built for another platform or a newer glibc: install tfy again on this one",
        ) from error


def open_counters() -> Callable[[], Counters]:
    """What reads the counters of the process that calls it; `StartError` where the plugin is not registered.

    It serves forked children too: looking a library up may wait for what a parent's thread held.
    """
    path = plugin_path()
    try:
        # With RTLD_NOLOAD: counters of a library that TensorFlow does not use would always be zero.
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError as error:
        raise StartError(f"the hdfs:// plugin {path} is not registered in this process") from error
    fetch = library.tfy_counters
    fetch.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    fetch.restype = ctypes.c_int64
    return partial(_read, fetch)


def read_counters() -> Counters:
    """The counters of this process, where the plugin is registered in it; else `StartError`."""
    return open_counters()()


def _read(fetch: ctypes._NamedFuncPointer) -> Counters:
    try:
        return msgspec.json.decode(_fetch_text(fetch), type=Counters)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise InternalError(f"the hdfs:// plugin's counters are not readable: {error}") from error


def _fetch_text(fetch: ctypes._NamedFuncPointer) -> bytes:
    """The text, in a buffer that was large enough for it: it may grow from one call to the next."""
    size = 1024
    while True:
        buffer = ctypes.create_string_buffer(size)
        needed = fetch(buffer, size)
        if needed < 0:
            raise InternalError("the hdfs:// plugin could not tell its counters")
        if needed <= size:
            return buffer.raw[:needed]
        size = 2 * needed
