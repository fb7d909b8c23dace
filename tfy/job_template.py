"""A commented job.yaml for a program, made from the one table of the keys. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from tfy.job_keys import JOB_KEYS
from tfy.spec import Strategy
from tfy.task_keys import STRATEGY_TASKS, Key
from tfy.yaml_marks import Scalar, join_path, parse_yaml

_HEAD = """\
# What `tfy submit` runs. A key behind a # may be left out: it shows its default, or an example
# where there is none. All keys: docs/job.md; what is wrong is said before anything is sent.
"""
_COMMENT_COLUMN = 34
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is known of a job before its user has said anything. Paths are relative to job.yaml."""

    program: str
    files: tuple[str, ...]
    strategy: Strategy

    @property
    def name(self) -> str:
        """The program's name as that of a job."""
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", PurePosixPath(self.program).stem)
        return (stem if re.match("[A-Za-z]", stem) else f"job-{stem}")[:_LONGEST_NAME]

    @property
    def values(self) -> Mapping[str, str]:
        """Key path → the value that is written, as YAML."""
        values = {
            "name": _quote(self.name),
            "program": _quote(self.program),
            "strategy": self.strategy,
            "tasks.worker.instances": "2",
        }
        if self.files:
            values["files"] = f"[{', '.join(_quote(name) for name in self.files)}]"
        return MappingProxyType(values)


def make_template(draft: Draft) -> str:
    """The text of a job.yaml that loads as it is, and with any of its commented keys taken in."""
    return _HEAD + "\n" + "\n".join(_write_section("", draft, prefix="", given=True)) + "\n"


def _write_section(path: str, draft: Draft, *, prefix: str, given: bool) -> Iterator[str]:
    """The lines of one mapping; `prefix` stands before its keys, `given` says that it is no comment."""
    refused = [f"tasks.{task_type}" for task_type, _ in STRATEGY_TASKS[draft.strategy].refused]
    for key in JOB_KEYS[path].entries:
        key_path = join_path(path, key.name)
        if key_path in refused:
            continue
        wanted = given and _is_wanted(key_path, key, draft)
        # Inside a comment the # stands before the indentation already.
        head = f"{prefix}# " if given and not wanted else prefix
        if key_path in JOB_KEYS:
            yield _annotate(f"{head}{key.name}:", _explain(key, ""))
            yield from _write_section(key_path, draft, prefix=f"{head}  ", given=wanted)
        else:
            value = draft.values.get(key_path) or _value_of(key)
            yield _annotate(f"{head}{key.name}: {value}", _explain(key, value))


def _is_wanted(key_path: str, key: Key, draft: Draft) -> bool:
    parent, _, task_type = key_path.rpartition(".")
    if parent == "tasks":
        # Under `none` any type will do, but one there must be.
        return task_type in (STRATEGY_TASKS[draft.strategy].required or ("worker",))
    return key_path in draft.values or key.default == "required"


def _value_of(key: Key) -> str:
    text = key.example if key.default_is_told else key.default
    root, _ = parse_yaml(text)
    # `off` is a word here, and false to YAML.
    return json.dumps(text) if isinstance(root, Scalar) and root.kind == "boolean" else text


def _explain(key: Key, value: str) -> str:
    """One line: of several sentences the one about `value`, else the first."""
    sentences = re.split(r"(?<=\.) |; ", key.text.replace("\n", " "))
    chosen = next((said for said in sentences if value and said.startswith(f"`{value}`")), sentences[0])
    text = chosen.rstrip(".").replace("`", "")
    if key.default in ("none", "as worker") and key.example:
        text += f" [default: {key.default}]"
    return text


def _annotate(line: str, comment: str) -> str:
    return f"{line.ljust(_COMMENT_COLUMN)} # {comment}"


def _quote(text: str) -> str:
    """A text as YAML reads it back, with `$` as job.yaml wants it."""
    text = text.replace("$", "$$")
    root, _ = parse_yaml(text) if re.fullmatch(r"[A-Za-z0-9_./-]+", text) else (None, ())
    plain = isinstance(root, Scalar) and root.kind == "string"
    return text if plain else json.dumps(text, ensure_ascii=False)
