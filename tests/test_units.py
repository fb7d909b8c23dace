"""Memory sizes and durations: what is accepted, and the hint in each refusal."""

from __future__ import annotations

import pytest

from tfy.errors import EXIT_SPEC
from tfy.units import (
    UnitError,
    count_noun,
    format_duration,
    format_memory,
    parse_duration_s,
    parse_memory_mib,
)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("4 GiB", 4096),
        ("4GiB", 4096),
        ("4096 MiB", 4096),
        ("4g", 4096),
        ("4096m", 4096),
        (" 4 gib ", 4096),
        ("1.5 GiB", 1536),
        ("1 TiB", 1024 * 1024),
        ("1t", 1024 * 1024),
    ],
)
def test_memory_accepted(text: str, mib: int) -> None:
    assert parse_memory_mib(text) == mib


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("4GB", 'write "4 GiB" (1024-based, as Hadoop and Spark count) or "3815 MiB" (powers of ten)'),
        ("4G", 'write "4 GiB" (1024-based, as Hadoop and Spark count) or "3815 MiB" (powers of ten)'),
        ("4gb", 'write "4 GiB"'),
        ("512MB", 'write "512 MiB" (1024-based, as Hadoop and Spark count) or "489 MiB"'),
        ("512M", 'write "512 MiB"'),
        ("4096", 'has no unit; write "4096 MiB" or "4096 GiB"'),
        ("4 xib", "has the unknown unit 'xib'"),
        ("4096k", "too small a unit"),
        ("1.3 MiB", 'not a whole number of MiB; write for example "2 MiB"'),
        ("0 GiB", "no memory at all"),
        ("true", "is not a memory size; write it like 4 GiB, 4096 MiB, 4g or 4096m"),
        ("-4 GiB", "is not a memory size"),
        ("", "is not a memory size"),
        ("4 GiB 2", "is not a memory size"),
    ],
)
def test_memory_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse_memory_mib(text)
    assert hint in refused.value.message
    assert repr(text) in refused.value.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90),
        ("10 min", 600),
        ("10m", 600),
        ("6h", 21600),
        ("2 d", 172800),
        ("1 hour", 3600),
        ("1.5 h", 5400),
        ("1 h 30 min", 5400),
        ("1h30m", 5400),
    ],
)
def test_duration_accepted(text: str, seconds: int) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10", 'has no unit; write "10 s" or "10 min"'),
        ("1 h 30", 'has no unit; write "30 s"'),
        ("5 weeks", "unknown unit 'weeks'"),
        ("soon", "is not a duration; write it like 90 s, 10 min, 6 h or 2 d"),
        ("-1 h", "is not a duration"),
        ("", "is not a duration"),
        ("0 s", "at least 1"),
        ("0.5 s", "not a whole number of seconds"),
    ],
)
def test_duration_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse_duration_s(text)
    assert hint in refused.value.message


@pytest.mark.parametrize("mib", [1, 512, 1024, 1536, 3815, 4096, 1024 * 1024])
def test_memory_is_read_back_as_written(mib: int) -> None:
    assert parse_memory_mib(format_memory(mib)) == mib


@pytest.mark.parametrize("seconds", [1, 59, 60, 90, 600, 3661, 86400, 100000])
def test_duration_is_read_back_as_written(seconds: int) -> None:
    assert parse_duration_s(format_duration(seconds)) == seconds


def test_format_for_a_person() -> None:
    assert [format_memory(mib) for mib in (768, 2048)] == ["768 MiB", "2 GiB"]
    durations = [format_duration(seconds) for seconds in (0, 2.34, 35.6, 5400)]
    assert durations == ["0 s", "2.3 s", "36 s", "1 h 30 min"]


def test_a_count_takes_its_plural() -> None:
    assert [count_noun(count, "file") for count in (0, 1, 1200)] == ["0 files", "1 file", "1,200 files"]


def test_a_wrong_unit_is_an_error_of_the_spec() -> None:
    assert UnitError.exit_status == EXIT_SPEC
    assert issubclass(UnitError, ValueError)
