"""TFRecord files for tests, as TensorFlow writes them but without TensorFlow."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from tfy.storage.tfrecord import ReadRange, masked_crc32c


def encode_records(contents: Iterable[bytes]) -> bytes:
    """A file of these records. The checksum of a long content is left at zero: nobody here reads it."""
    parts = []
    for content in contents:
        length = struct.pack("<Q", len(content))
        checksum = masked_crc32c(content) if len(content) < 1000 else 0
        parts += [length, struct.pack("<I", masked_crc32c(length)), content, struct.pack("<I", checksum)]
    return b"".join(parts)


def compress(data: bytes, form: str) -> bytes:
    """The same file as gzip or zlib; any other `form` leaves it."""
    if form == "gzip":
        return gzip.compress(data)
    return zlib.compress(data) if form == "zlib" else data


def reader_of(data: bytes) -> ReadRange:
    """Reads of a file in memory; beyond its end they fail, as HDFS' do."""

    def read(offset: int, size: int) -> bytes:
        assert 0 <= offset <= offset + size <= len(data)
        return data[offset : offset + size]

    return read


def write_records(path: Path, names: Iterable[str]) -> list[bytes]:
    """A local file of short records; what they hold."""
    contents = [name.encode() for name in names]
    path.write_bytes(encode_records(contents))
    return contents
