"""YAML as a frozen tree in which every key and value knows its line.

Scalars keep the text as written beside the type that YAML gives it, so that a check can say
`yes is a boolean` instead of `True`. Duplicate keys, which YAML readers pass silently with the last
one winning, are reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import yaml

ScalarKind = Literal["string", "integer", "float", "boolean", "null", "other"]

_KINDS: dict[str, ScalarKind] = {
    "tag:yaml.org,2002:str": "string",
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:null": "null",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: its text as written (without quotes) and its YAML type."""

    line: int
    kind: ScalarKind
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a mapping; `line` is the key's."""

    line: int
    key: str
    value: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping, each key once, in the order of the file."""

    line: int
    entries: tuple[Entry, ...]


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong in a file, and what would be right. Line 0 is the file as a whole."""

    line: int
    path: str
    text: str

    def render(self, file: str) -> str:
        """The problem as one line: `job.yaml:7: tasks.worker.memroy: unknown key; …`."""
        where = f"{file}:{self.line}" if self.line else file
        return f"{where}: {self.path}: {self.text}" if self.path else f"{where}: {self.text}"


class YamlProblem(Exception):
    """The text is not YAML at all, so that nothing more can be said about it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def join_path(path: str, key: str) -> str:
    """The path of `key` inside the mapping at `path`."""
    return f"{path}.{key}" if path else key


def parse_yaml(text: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The tree of one YAML document (None for an empty one), and its duplicate keys and the like.

    Raises `YamlProblem` where the text is not YAML.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = " ".join(part for part in (error.context, error.problem) if part)
        raise YamlProblem(Problem(mark.line + 1 if mark else 0, "", f"not valid YAML: {why}")) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlProblem(Problem(line, "", f"not valid YAML: {error.reason}")) from error
    if root is None:
        return None, ()
    tree = _Tree()
    return tree.convert(root, ""), tuple(tree.problems)


class _Tree:
    """One conversion. Aliases share what their anchor became, so that a chain of them cannot explode."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._done: dict[int, Node] = {}
        self._open: set[int] = set()

    def convert(self, node: yaml.Node, path: str) -> Node:
        line = node.start_mark.line + 1
        if id(node) in self._open:
            self.problems.append(Problem(line, path, "refers to itself"))
            return Scalar(line, "other", "")
        if id(node) not in self._done:
            self._open.add(id(node))
            self._done[id(node)] = self._convert_new(node, path, line)
            self._open.discard(id(node))
        return self._done[id(node)]

    def _convert_new(self, node: yaml.Node, path: str, line: int) -> Node:
        if isinstance(node, yaml.MappingNode):
            return Mapping(line, self._entries(node, path))
        if isinstance(node, yaml.SequenceNode):
            items = (self.convert(item, f"{path}[{index}]") for index, item in enumerate(node.value))
            return Sequence(line, tuple(items))
        return Scalar(line, _KINDS.get(node.tag, "other"), str(node.value))

    def _entries(self, node: yaml.MappingNode, path: str) -> tuple[Entry, ...]:
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(line, path, "a key must be a single word"))
                continue
            key = str(key_node.value)
            key_path = join_path(path, key)
            value = self.convert(value_node, key_path)
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.problems.append(Problem(line, key_path, "merging is not supported; write the keys out"))
            elif key in entries:
                first = entries[key].line
                self.problems.append(Problem(line, key_path, f"given twice; the first is on line {first}"))
            else:
                entries[key] = Entry(line, key, value)
        return tuple(entries.values())
