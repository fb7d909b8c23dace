"""The clock of a program's log: what it notes, how it stays small, what its trouble does."""

from __future__ import annotations

import os
from pathlib import Path

from tfy.runtime.log_clock import MOST_ENTRIES, Entry, LogClock, thin


def read_entries(path: Path) -> list[tuple[float, int]]:
    return [(float(time), int(size)) for time, size in map(str.split, path.read_text().splitlines())]


def test_growth_is_noted_and_nothing_else(tmp_path: Path) -> None:
    log, times = tmp_path / "worker-1.log", tmp_path / "worker-1.times"
    clock = LogClock(log, times)
    log.write_bytes(b"")
    clock.tick(100.0)
    assert not times.exists()
    log.write_bytes(b"one\n")
    clock.tick(100.5)
    clock.tick(101.0)
    log.write_bytes(b"one\ntwo\n")
    clock.tick(101.5)
    assert read_entries(times) == [(100.5, 4), (101.5, 8)]


def test_a_clock_that_is_set_back_does_not_turn_lines_around(tmp_path: Path) -> None:
    log, times = tmp_path / "a.log", tmp_path / "a.times"
    clock = LogClock(log, times)
    for size, now in ((1, 100.0), (2, 40.0), (3, 100.5)):
        log.write_bytes(b"x" * size)
        clock.tick(now)
    assert read_entries(times) == [(100.0, 1), (100.0, 2), (100.5, 3)]


def test_days_of_chatter_stay_small_and_the_newest_entries_exact(tmp_path: Path) -> None:
    log, times = tmp_path / "a.log", tmp_path / "a.times"
    log.touch()
    clock = LogClock(log, times)
    largest = 0
    ticks = 40_000
    for tick in range(1, ticks + 1):
        os.truncate(log, tick * 1000)
        clock.tick(1_796_000_000 + tick / 2)
        if tick % 500 == 0:
            largest = max(largest, times.stat().st_size)
    entries = read_entries(times)
    assert largest < 100 << 10
    assert len(entries) <= MOST_ENTRIES
    assert entries == sorted(entries)
    newest = [(1_796_000_000 + tick / 2, tick * 1000) for tick in range(ticks - 999, ticks + 1)]
    assert entries[-1000:] == newest
    # The first hours are still there, only coarser.
    assert entries[0][0] < 1_796_000_000 + 600
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.log", "a.times"]


def test_what_goes_first_lies_closest_to_its_next() -> None:
    lonely = [Entry(hour * 3600.0, hour) for hour in range(1, 101)]
    burst = [Entry(1_000_000 + number / 2, 1000 + number) for number in range(2000)]
    recent = [Entry(2_000_000 + number / 2, 10_000 + number) for number in range(1024)]
    kept = thin([*lonely, *burst, *recent])
    assert kept[:100] == lonely
    assert kept[-1024:] == recent
    assert 100 + 1024 < len(kept) <= 2048


def test_trouble_with_the_file_is_not_the_tasks(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"x")
    clock = LogClock(log, tmp_path / "nowhere" / "a.times")
    clock.tick(100.0)
    log.write_bytes(b"xx")
    clock.tick(101.0)
    assert not (tmp_path / "nowhere").exists()
