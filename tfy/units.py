"""Memory sizes and durations as a person writes them, and back; counts as a person reads them.

Memory is counted in MiB and 1024-based throughout, as Hadoop and Spark do. What could mean
two things (`4GB`, a bare number) is refused, with the two spellings to choose from.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from fractions import Fraction

from tfy.errors import SpecError

MEMORY_EXAMPLES = "4 GiB, 4096 MiB, 4g or 4096m"
DURATION_EXAMPLES = "90 s, 10 min, 6 h or 2 d"

_MEMORY_UNITS_MIB = {"mib": 1, "gib": 1024, "tib": 1024 * 1024}
_MEMORY_SHORT_MIB = {"m": 1, "g": 1024, "t": 1024 * 1024}
_POWERS_OF_TEN = {"k": 3, "m": 6, "g": 9, "t": 12}
_DURATION_UNITS_S = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_DURATION_NAMES = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

_NUMBER = r"(\d+(?:\.\d+)?)"
_MEMORY = re.compile(rf"{_NUMBER}\s*([A-Za-z]*)", re.ASCII)
_DURATION_PART = re.compile(rf"\s*{_NUMBER}\s*([A-Za-z]*)", re.ASCII)


class UnitError(SpecError, ValueError):
    """A size or a duration that is not accepted; the text says what would be."""


def parse_memory_mib(text: str) -> int:
    """A memory size such as `4 GiB`, `4096 MiB`, `4g` or `4096m`, in MiB.

    Raises `UnitError` for a bare number, for `4GB` and `4G` (which of two sizes?), for what is
    not a whole number of MiB, and for zero.
    """
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"{text!r} is not a memory size; write it like {MEMORY_EXAMPLES}")
    number, unit = match.groups()
    if not unit:
        raise UnitError(f'{text!r} has no unit; write "{number} MiB" or "{number} GiB"')
    factor = _MEMORY_SHORT_MIB.get(unit) or _MEMORY_UNITS_MIB.get(unit.lower())
    if factor is None:
        raise UnitError(_explain_memory_unit(text, number, unit))
    mib = Fraction(number) * factor
    if mib.denominator != 1:
        raise UnitError(f'{text!r} is not a whole number of MiB; write for example "{math.ceil(mib)} MiB"')
    if mib < 1:
        raise UnitError(f"{text!r} is no memory at all; write it like {MEMORY_EXAMPLES}")
    return int(mib)


def _explain_memory_unit(text: str, number: str, unit: str) -> str:
    prefix = unit[0].lower()
    if unit.lower() not in (prefix, prefix + "b") or prefix not in _POWERS_OF_TEN:
        return f"{text!r} has the unknown unit {unit!r}; write it like {MEMORY_EXAMPLES}"
    if prefix == "k":
        return f"{text!r} is counted in too small a unit; write it like {MEMORY_EXAMPLES}"
    decimal_mib = math.ceil(Fraction(number) * 10 ** _POWERS_OF_TEN[prefix] / 2**20)
    return (
        f'{text!r} can mean two sizes; write "{number} {prefix.upper()}iB" (1024-based, as Hadoop and Spark '
        f'count) or "{max(decimal_mib, 1)} MiB" (powers of ten)'
    )


def parse_duration_s(text: str) -> int:
    """A duration such as `90 s`, `10 min`, `6h`, `2 d` or `1 h 30 min`, in seconds.

    Raises `UnitError` for a bare number, an unknown unit, parts of a second, and zero.
    """
    seconds, position, stripped = Fraction(0), 0, text.strip()
    while position < len(stripped):
        match = _DURATION_PART.match(stripped, position)
        if match is None:
            break
        number, unit = match.groups()
        if not unit:
            raise UnitError(f'{text!r} has no unit; write "{number} s" or "{number} min"')
        factor = _DURATION_UNITS_S.get(unit.lower())
        if factor is None:
            raise UnitError(f"{text!r} has the unknown unit {unit!r}; write it like {DURATION_EXAMPLES}")
        seconds += Fraction(number) * factor
        position = match.end()
    if position == 0 or position < len(stripped):
        raise UnitError(f"{text!r} is not a duration; write it like {DURATION_EXAMPLES}")
    if seconds.denominator != 1 or seconds < 1:
        raise UnitError(f"{text!r} is not a whole number of seconds, at least 1")
    return int(seconds)


def format_memory(mib: int) -> str:
    """MiB as `parse_memory_mib` reads it back, in GiB where that is exact."""
    if mib and mib % 1024 == 0:
        return f"{mib // 1024} GiB"
    return f"{mib} MiB"


def format_duration(seconds: float) -> str:
    """Seconds as `parse_duration_s` reads them back, with one decimal under ten seconds."""
    if 0 < seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    rest, parts = round(seconds), []
    for name, factor in _DURATION_NAMES:
        count, rest = divmod(rest, factor)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 s"


def count_noun(count: int, noun: str) -> str:
    """As `1 file` and `1,200 files`, for nouns that take an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_time(moment: datetime) -> str:
    """A moment as this machine's clock shows it, to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
