"""TFRecord files and their splits by `tfy://records/`, for tests of the record reader."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

from tfy.runtime.filesystem import InputCounters, read_counters

SETS = itertools.count(time.time_ns() % 1_000_000_000)
MODULUS = 2**64


def mark(path: str, offset: int) -> int:
    """H of native/src/input.rs, by its definition: 64-bit FNV-1a."""
    number = 0xCBF29CE484222325
    for byte in f"{path}\0{offset}".encode():
        number = (number ^ byte) * 0x100000001B3 % MODULUS
    return number


def write_records(tf: Any, path: str, records: list[bytes]) -> str:
    with tf.io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path


def mixed(count: int, largest: int = 20_000) -> list[bytes]:
    """Records of no byte, of few and of many, each unlike the others."""
    chance = random.Random(count)
    sizes = [0, 0, 3, largest, *(chance.choice([0, 10, 300, 3000]) for _ in range(count - 4))]
    return [number.to_bytes(4, "big")[:size] + chance.randbytes(size) for number, size in enumerate(sizes)]


def read_split(
    tf: Any, path: str, number: int, of: int, span: tuple[int, int], epoch: int = 0
) -> list[bytes]:
    name = f"tfy://records/{number}/{epoch}/{of}/{span[0]}-{span[1]}/{path}"
    return [bytes(record) for record in tf.data.TFRecordDataset(name).as_numpy_iterator()]


def read_parts(tf: Any, path: str, number: int, parts: int, length: int) -> list[bytes]:
    """All records of all parts, in order."""
    found = (read_split(tf, path, number, parts, span) for span in spans(length, parts))
    return list(itertools.chain.from_iterable(found))


def counted(number: int) -> InputCounters:
    return next(counters for counters in read_counters().input if counters.set == number)


def spans(length: int, parts: int) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(length * part // parts for part in range(parts + 1))


def expected(number: int, path: str, records: int, length: int) -> InputCounters:
    return InputCounters(
        set=number,
        records=records,
        epochs=1,
        epoch_records=records,
        epoch_bytes=length,
        coverage=(mark(path, length) - mark(path, 0)) % MODULUS,
        uneven=0,
    )
