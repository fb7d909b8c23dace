"""A mapping with job.yaml's keys → JobSpec, by the same rules and with the same refusals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tfy import yaml_marks
from tfy.load import read_tree
from tfy.spec import JobSpec
from tfy.yaml_fields import Problems
from tfy.yaml_marks import Entry, Node, Scalar, join_path

# What refusals name in place of a file; they have no line.
LABEL = "job"
_NO_LINE = 0


def load_mapping(job: Mapping[str, object], base_dir: Path, environ: Mapping[str, str]) -> JobSpec:
    """Checks `job`, whose paths are relative to `base_dir`; `environ` gives the values of `${VAR}`.

    Raises one `SpecError` that has a line `job: key.path: …` for each thing that is wrong.
    """
    problems = Problems()
    root = _make_mapping(job, "", problems)
    spec = read_tree(root, base_dir.absolute() / "job.yaml", environ, problems)
    problems.raise_all(LABEL)
    return spec


def make_job_yaml(job: Mapping[str, object]) -> bytes:
    """The job as the text of a job.yaml: JSON, which is YAML too."""
    return msgspec.json.format(msgspec.json.encode(job, enc_hook=os.fspath), indent=2)


def _make_mapping(value: Mapping[str, object], path: str, problems: Problems) -> yaml_marks.Mapping:
    entries = []
    for key, inner in value.items():
        if isinstance(key, str):
            entries.append(Entry(_NO_LINE, key, _make_node(inner, join_path(path, key), problems)))
        else:
            problems.add(_NO_LINE, join_path(path, str(key)), "a key must be a text")
    return yaml_marks.Mapping(_NO_LINE, tuple(entries))


def _make_node(value: object, path: str, problems: Problems) -> Node:
    if isinstance(value, Mapping):
        return _make_mapping(value, path, problems)
    if isinstance(value, str | os.PathLike):
        return Scalar(_NO_LINE, "string", str(os.fspath(value)))
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        items = (_make_node(item, f"{path}[{index}]", problems) for index, item in enumerate(value))
        return yaml_marks.Sequence(_NO_LINE, tuple(items))
    if value is None:
        return Scalar(_NO_LINE, "null", "")
    if isinstance(value, bool):
        return Scalar(_NO_LINE, "boolean", str(value).lower())
    if isinstance(value, int):
        return Scalar(_NO_LINE, "integer", str(value))
    if isinstance(value, float):
        return Scalar(_NO_LINE, "float", str(value))
    return Scalar(_NO_LINE, "other", str(value))
