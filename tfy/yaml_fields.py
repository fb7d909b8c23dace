"""Typed values out of a YAML tree, with everything that is wrong collected on the way.

A reading function returns None where the value is absent or wrong; what is wrong is noted with
line and key path, so that one run tells all errors of a file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tfy import yaml_marks
from tfy.errors import SpecError
from tfy.job_values import substitute
from tfy.task_keys import Keys
from tfy.yaml_marks import Entry, Node, Problem, Scalar, join_path

T = TypeVar("T")

_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_WORDS = {"integer": "an integer", "float": "a number", "boolean": "a boolean", "other": "of a special type"}


class Problems:
    """What is wrong in one file, in the order of finding."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def add(self, line: int, path: str, text: str) -> None:
        """Note one problem."""
        self._found.append(Problem(line, path, text))

    def extend(self, problems: tuple[Problem, ...]) -> None:
        """Note several."""
        self._found.extend(problems)

    def raise_all(self, file: str) -> None:
        """Raise one `SpecError` with a line for each problem, in the order of the file, if there is any."""
        if self._found:
            raise SpecError("\n".join(problem.render(file) for problem in sorted(self._found)))


class Fields:
    """One mapping of the file, read key by key.

    `keys` None means that the keys are the user's own. Unknown keys are noted at once.
    """

    def __init__(
        self,
        node: yaml_marks.Mapping,
        path: str,
        keys: Keys | None,
        environ: Mapping[str, str],
        problems: Problems,
    ) -> None:
        self.line = node.line
        self.path = path
        self.keys = keys
        self._environ = environ
        self._problems = problems
        self._entries = {entry.key: entry for entry in node.entries}
        self._misspelt: set[str] = set()
        if keys is not None:
            for entry in node.entries:
                self._check_key(entry, keys)

    def _check_key(self, entry: Entry, keys: Keys) -> None:
        if entry.key in keys.known:
            return
        reason = dict(keys.refused).get(entry.key)
        if reason is None and entry.key in keys.later:
            reason = "not supported yet"
        if reason is None:
            near = difflib.get_close_matches(entry.key.lower().replace("-", "_"), keys.known, n=1)
            guess = f' did you mean "{near[0]}"?' if near else ""
            self._misspelt.update(near)
            reason = f"unknown key;{guess} known keys: {', '.join(keys.known)}"
        self._problems.add(entry.line, join_path(self.path, entry.key), reason)

    def names(self) -> tuple[str, ...]:
        """The keys that the file gives."""
        return tuple(self._entries)

    def refuse(self, key: str, text: str) -> None:
        """Note that the value of `key` is wrong."""
        entry = self._entries.get(key)
        self._problems.add(entry.line if entry else self.line, join_path(self.path, key), text)

    def require(self, key: str, example: str) -> None:
        """Note a missing `key`, with an example of how to give it; not where it is there misspelt."""
        if key not in self._entries and key not in self._misspelt:
            self.refuse(key, f"missing; give for example {example}")

    def text(self, key: str, check: Callable[[str], T]) -> T | None:
        """A string, through `check`."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        return self._checked(entry.value, entry.line, join_path(self.path, key), check)

    def quantity(self, key: str, parse: Callable[[str], T], noun: str) -> T | None:
        """Something with a unit, which YAML may take for another type when the unit is missing."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not isinstance(entry.value, Scalar) or entry.value.kind == "null":
            self.refuse(key, f"{_describe(entry.value)}; {noun} is expected")
            return None
        value = Scalar(entry.value.line, "string", entry.value.text)
        return self._checked(value, entry.line, join_path(self.path, key), parse)

    def integer(self, key: str, minimum: int) -> int | None:
        """A whole number, `minimum` or more; `${VAR}` may stand for one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value = entry.value
        if not isinstance(value, Scalar) or not (value.kind == "integer" or _is_variable(value)):
            self.refuse(key, f"{_describe(value)}; a whole number is expected, without quotes")
            return None
        try:
            text = substitute(value.text, self._environ)
        except SpecError as error:
            self.refuse(key, error.message)
            return None
        if not _DECIMAL.fullmatch(text):
            self.refuse(key, f"{text!r} is not a whole number in plain decimal digits")
            return None
        if int(text) < minimum:
            self.refuse(key, f"{text} is too small; accepted: {minimum} or more")
            return None
        return int(text)

    def texts(self, key: str, check: Callable[[str], T]) -> tuple[T, ...] | None:
        """A list of strings, each through `check`."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not isinstance(entry.value, yaml_marks.Sequence):
            self.refuse(key, f"{_describe(entry.value)}; a list of strings is expected: [...]")
            return None
        path = join_path(self.path, key)
        values = [
            self._checked(item, item.line, f"{path}[{index}]", check)
            for index, item in enumerate(entry.value.items)
        ]
        good = tuple(value for value in values if value is not None)
        return good if len(good) == len(values) else None

    def child(self, key: str, keys: Keys | None) -> Fields | None:
        """A mapping inside this one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        path = join_path(self.path, key)
        if not isinstance(entry.value, yaml_marks.Mapping):
            expected = f"with the keys {', '.join(keys.known)}" if keys else "from names to strings"
            self.refuse(key, f"{_describe(entry.value)}; a mapping {expected} is expected")
            return None
        return Fields(entry.value, path, keys, self._environ, self._problems)

    def _checked(self, value: Node, line: int, path: str, check: Callable[[str], T]) -> T | None:
        if not isinstance(value, Scalar) or value.kind != "string":
            self._problems.add(line, path, f"{_describe(value)}; a string is expected{_quoted(value)}")
            return None
        try:
            text = substitute(value.text, self._environ)
            if "\0" in text:
                raise SpecError("has a NUL character in it")
            return check(text)
        except SpecError as error:
            self._problems.add(line, path, error.message)
            return None


def _is_variable(value: Scalar) -> bool:
    return value.kind == "string" and value.text.startswith("${") and value.text.endswith("}")


def _quoted(value: Node) -> str:
    if isinstance(value, Scalar) and value.kind not in ("null", "other"):
        return f', so quote it: "{value.text}"'
    return ""


def _describe(value: Node) -> str:
    if isinstance(value, yaml_marks.Sequence):
        return "a list stands here"
    if isinstance(value, yaml_marks.Mapping):
        return "a mapping stands here"
    if value.kind == "null":
        return "has no value"
    if value.kind == "string":
        return f'"{value.text}" is a string'
    return f"{value.text} is {_WORDS[value.kind]} in YAML"
