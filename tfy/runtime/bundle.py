"""Whether a TensorFlow checkpoint is all there, from its index and the lengths of its files.

A checkpoint `prefix` is `prefix.index` and `prefix.data-0000i-of-0000N`. The index is a table in
LevelDB's format (tensorflow/core/lib/io/table) of BundleEntryProto, which TensorFlow writes last
and uncompressed: it says where in which data file each tensor ends. No tensor is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER_BYTES = 48
# After each block: one byte for its compression, four for its CRC.
_TRAILER_BYTES = 5
_UNCOMPRESSED = 0
_HEADER_KEY = b""
_MOST_SHARDS = 99_999  # five digits
_DATA_FILE = re.compile(r"\.data-(\d{5})-of-(\d{5})$")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a checkpoint lacks."""

    text: str
    unfinished: bool
    """Its index, which is written last, is not whole: saving it never ended."""

    def __str__(self) -> str:
        return self.text


class CompressedIndexError(Exception):
    """A block of the index is compressed: TensorFlow's own writer never does."""


class MalformedIndexError(Exception):
    """These bytes are not a whole index."""


def find_flaw(prefix: str) -> Flaw | None:
    """What the checkpoint `prefix` lacks, or None where nothing is missing.

    Works wherever tf.io.gfile does. Bytes that were changed in place are found by the checksums
    when it is restored, not here. Raises tf.errors.OpError where the storage does not answer.
    """
    import tensorflow as tf

    try:
        with tf.io.gfile.GFile(f"{prefix}.index", "rb") as file:
            needed = parse_index(file.read())
    except tf.errors.NotFoundError:
        return Flaw("it has no .index file", unfinished=True)
    except MalformedIndexError as error:
        return Flaw(str(error), unfinished=True)
    except CompressedIndexError:
        return _flaw_by_name(prefix)
    for shard, least in enumerate(needed):
        text = _shortfall(f"{prefix}.data-{shard:05d}-of-{len(needed):05d}", least)
        if text:
            return Flaw(text, unfinished=False)
    return None


def parse_index(data: bytes) -> list[int]:
    """How many bytes each data file must have at least; 0 for one that holds no tensor.

    Raises MalformedIndexError where `data` is not a whole index, CompressedIndexError where it
    may be one but only by its names can more be said.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

    table = dict(_table(data))
    if _HEADER_KEY not in table:
        raise MalformedIndexError("its .index has no header")
    try:
        header = BundleHeaderProto.FromString(table.pop(_HEADER_KEY))
        entries = [BundleEntryProto.FromString(value) for value in table.values()]
    except DecodeError as error:
        raise MalformedIndexError(f"its .index cannot be decoded: {error}") from error
    if not 0 < header.num_shards <= _MOST_SHARDS:
        raise MalformedIndexError(f"its .index tells of {header.num_shards} data files")
    needed = [0] * header.num_shards
    for entry in entries:
        if not 0 <= entry.shard_id < len(needed):
            raise MalformedIndexError(f"its .index names data file {entry.shard_id} of {len(needed)}")
        # A partitioned variable has an entry without data for the whole, and one for each slice.
        needed[entry.shard_id] = max(needed[entry.shard_id], entry.offset + entry.size)
    return needed


def _shortfall(path: str, least: int) -> str | None:
    """What the data file `path` lacks of its `least` bytes."""
    import tensorflow as tf

    name = path.rpartition("/")[2]
    if not least:
        return None  # no tensor lies in it, so nothing reads it
    try:
        length = tf.io.gfile.stat(path).length
    except tf.errors.NotFoundError:
        return f"{name} is missing"
    return f"{name} has {length} of {least} bytes" if length < least else None


def _flaw_by_name(prefix: str) -> Flaw | None:
    """What is missing of the data files where the index cannot be read: one of each number must be there."""
    import tensorflow as tf

    folder, _, name = prefix.rpartition("/")
    found: dict[int, set[int]] = {}
    for path in tf.io.gfile.listdir(folder or "."):
        match = _DATA_FILE.search(path)
        if match and path[: match.start()] == name:
            found.setdefault(int(match[2]), set()).add(int(match[1]))
    if any(shards == set(range(count)) for count, shards in found.items()):
        return None
    return Flaw("some of its data files are missing", unfinished=False)


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each entry of a table."""
    if len(data) < _FOOTER_BYTES or not data.endswith(_MAGIC):
        raise MalformedIndexError(f"its .index is cut short or is none ({len(data)} bytes)")
    body = data[:-_FOOTER_BYTES]
    footer = _Reader(data[-_FOOTER_BYTES:])
    footer.handle()  # of the block of filters, which TensorFlow does not use
    for _, handle in _block(body, *footer.handle()):
        yield from _block(body, *_Reader(handle).handle())


def _block(body: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each entry of one block: a key is told by how it differs from the one before."""
    if offset + size + _TRAILER_BYTES > len(body):
        raise MalformedIndexError("its .index is damaged: a block lies beyond its end")
    if body[offset + size] != _UNCOMPRESSED:
        raise CompressedIndexError
    block = body[offset : offset + size]
    restarts = int.from_bytes(block[-4:], "little")
    entries = _Reader(block[: max(0, len(block) - 4 * (restarts + 1))])
    key = b""
    while entries.left():
        shared, rest, length = entries.varint(), entries.varint(), entries.varint()
        key = key[:shared] + entries.take(rest)
        yield key, entries.take(length)


class _Reader:
    """Takes numbers and bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left():
            raise MalformedIndexError("its .index is damaged: an entry lies beyond its block's end")
        self._at += count
        return self._data[self._at - count : self._at]

    def varint(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def handle(self) -> tuple[int, int]:
        """Where a block lies: offset and size in bytes."""
        return self.varint(), self.varint()
