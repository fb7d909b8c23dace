"""What the record reader costs: TFRecordDataset over tfy://records/… beside the plain hdfs:// path.

Writes one file for each record size to HDFS, reads it once for warmth, then in turns each way, and
prints MB/s (medians, the lowest and the highest). One process, tf.data's autotuning off:

    HADOOP_CONF_DIR=… python bench/records.py --size-mib 512 --repeats 7
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfy.runtime.filesystem import read_counters, register

RECORD_BYTES = (1024, 100 * 1024)
SPLITS = 4


def write_file(path: str, record_bytes: int, size_mib: int) -> int:
    """Writes records of one size; their number."""
    count = (size_mib << 20) // record_bytes
    data = os.urandom(record_bytes + 4096)
    with tf.io.TFRecordWriter(path) as writer:
        for index in range(count):
            writer.write(data[index % 4096 : index % 4096 + record_bytes])
    return count


def read_names(names: list[str]) -> tuple[int, float]:
    """How many records there are, and the seconds that it took to read them one file after another."""
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = tf.data.TFRecordDataset(names).with_options(options).batch(1000)
    began = time.perf_counter()
    count = sum(len(batch) for batch in dataset)
    return count, time.perf_counter() - began


def make_ways(path: str, length: int, epoch: int) -> dict[str, list[str]]:
    """The same file by each way."""
    cuts = [length * part // SPLITS for part in range(SPLITS + 1)]
    ranges = [f"{begin}-{end}" for begin, end in itertools.pairwise(cuts)]
    return {
        "hdfs://": [path],
        "tfy://records/, whole": [f"tfy://records/0/{epoch}/1/0-{length}/{path}"],
        f"tfy://records/, {SPLITS} ranges": [f"tfy://records/1/{epoch}/{SPLITS}/{r}/{path}" for r in ranges],
    }


def measure(path: str, record_bytes: int, size_mib: int, repeats: int) -> dict[str, list[float]]:
    """MB/s of each way, as often as it was tried."""
    count = write_file(path, record_bytes, size_mib)
    length = tf.io.gfile.stat(path).length
    read_names([path])
    speeds: dict[str, list[float]] = {}
    for epoch in range(repeats):
        ways = list(make_ways(path, length, epoch).items())
        for way, names in ways if epoch % 2 else reversed(ways):
            found, seconds = read_names(names)
            assert found == count, (way, found, count)
            speeds.setdefault(way, []).append(length / 1e6 / seconds)
    tf.io.gfile.remove(path)
    return speeds


def show(record_bytes: int, speeds: dict[str, list[float]]) -> None:
    """One row of the table for each way."""
    plain = statistics.median(speeds["hdfs://"])
    for way, values in sorted(speeds.items()):
        middle = statistics.median(values)
        spread = f"{min(values):.0f}-{max(values):.0f}"
        row = f"| {record_bytes // 1024} KiB | {way} | {middle:.0f} ({spread}) | {middle / plain:.2f} |\n"
        sys.stdout.write(row)


def main(argv: list[str]) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=f"hdfs:///tmp/bench-records-{os.getpid()}")
    parser.add_argument("--size-mib", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=7)
    arguments: Any = parser.parse_args(argv)
    register()
    tf.io.gfile.makedirs(arguments.folder)
    load = Path("/proc/loadavg").read_text().split()[0]
    sys.stdout.write(f"load {load}\n| records | way | MB/s | to hdfs:// |\n|---|---|---|---|\n")
    for record_bytes in RECORD_BYTES:
        path = f"{arguments.folder}/{record_bytes}"
        show(record_bytes, measure(path, record_bytes, arguments.size_mib, arguments.repeats))
        sys.stdout.flush()
    tf.io.gfile.rmtree(arguments.folder)
    # Both sizes are epochs of their sets, the second unlike the first.
    for counters in read_counters().input:
        assert (counters.epochs, counters.uneven) == (2 * arguments.repeats, arguments.repeats), counters


if __name__ == "__main__":
    main(sys.argv[1:])
