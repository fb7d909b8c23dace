"""Checks of single values of job.yaml. Each takes the text and returns it as tfy uses it, or
raises `SpecError` with what is accepted. Pure, except that `check_local_path` looks at the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TypeVar, get_args

from tfy.errors import SpecError
from tfy.job_keys import LATER_INPUT_MODES, OWNED_ENV_NAMES, OWNED_ENV_PREFIXES
from tfy.spec import Rdma, Shard, Strategy, Unequal

STORAGE_SCHEMES = ("hdfs", "viewfs")

Word = TypeVar("Word", bound=str)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}", re.ASCII)
_QUEUE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DOLLAR = re.compile(r"\$(\$|\{[A-Za-z_][A-Za-z0-9_]*\}|\{[^}]*\}?|[A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?")
# Left and right, double and single, high and low; and guillemets.
_CURLY_QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb"
_URI_ACCEPTED = "accepted: a full URI, as hdfs:///user/me/data or hdfs://nameservice/user/me/data"


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """`${VAR}` by its value in `environ`, `$$` by `$`; an unset or malformed one is refused."""

    def value(match: re.Match[str]) -> str:
        found = match.group(1)
        if found == "$":
            return "$"
        name = found.strip("{}")
        if not found.startswith("{"):
            raise SpecError(f"write ${{{name}}} for the variable's value, or $${name} for a plain dollar")
        if not found.endswith("}") or not _ENV_NAME.fullmatch(name):
            raise SpecError(f"{match.group()!r} is not a variable; accepted: ${{NAME}}, and $$ for a dollar")
        if name not in environ:
            raise SpecError(f"the environment variable {name} is not set where tfy runs")
        return environ[name]

    return _DOLLAR.sub(value, text)


def check_name(text: str) -> str:
    """A job's name."""
    if not _NAME.fullmatch(text):
        raise SpecError(
            f"{text!r} is not a job's name; accepted: a letter, then letters, digits, '.', '_' and '-', "
            "64 characters at most"
        )
    if text.startswith("application_"):
        raise SpecError(f"{text!r} looks like YARN's application id; choose another name")
    return text


def check_queue(text: str) -> str:
    """A queue's name or full path, as `default` or `root.ml.train`."""
    if not _QUEUE.fullmatch(text):
        raise SpecError(f"{text!r} is not a queue; accepted are letters, digits, '.', '_' and '-'")
    return text


def check_node_label(text: str) -> str:
    """A node label of YARN's; expressions of several are not a label."""
    if not _LABEL.fullmatch(text):
        raise SpecError(f"{text!r} is not a node label; accepted are letters, digits, '_' and '-'")
    return text


def check_strategy(text: str) -> Strategy:
    """How the program trains."""
    return _one_of(text, get_args(Strategy), "a strategy")


def check_rdma(text: str) -> Rdma:
    """Whether GPU collectives go over RDMA."""
    return _one_of(text, get_args(Rdma), "an rdma setting")


def check_shard(text: str) -> Shard:
    """How input files are shared out."""
    return _one_of(text, get_args(Shard), "a way to share out files")


def check_unequal(text: str) -> Unequal:
    """What is done where tasks would get unequal numbers of batches."""
    return _one_of(text, get_args(Unequal), "a way to treat unequal numbers of batches")


def _one_of(text: str, accepted: tuple[Word, ...], noun: str) -> Word:
    for word in accepted:
        if text == word:
            return word
    raise SpecError(f"{text!r} is not {noun}; accepted: {', '.join(accepted)}")


def check_input_mode(text: str) -> str:
    """How data reaches the workers: `tensorflow`."""
    if text in LATER_INPUT_MODES:
        raise SpecError(f"{text!r} is reserved and not supported yet; accepted: tensorflow")
    if text != "tensorflow":
        raise SpecError(f"{text!r} is not an input mode; accepted: tensorflow")
    return text


def check_python_env(text: str) -> str:
    """Where a task's Python comes from: `local`."""
    if text != "local":
        raise SpecError(f"{text!r} is not supported yet; accepted: local")
    return text


def check_env_name(text: str) -> str:
    """The name of an environment variable that the job may set."""
    if not _ENV_NAME.fullmatch(text):
        raise SpecError("not a variable's name; accepted: letters, digits and '_', no digit first")
    if text == "PYTHONPATH":
        raise SpecError("set by tfy itself; list your modules under files")
    if text in OWNED_ENV_NAMES or text.startswith(OWNED_ENV_PREFIXES):
        raise SpecError("set by tfy itself, a job cannot change it")
    return text


def check_storage_uri(text: str) -> str:
    """A file or folder, or a pattern of files, on HDFS, without a trailing slash."""
    for character in text:
        if character in _CURLY_QUOTES:
            raise SpecError(f"{text!r} has the curly quote {character} in it; use plain quotes")
        if character.isspace() or not character.isprintable():
            raise SpecError(f"{text!r} has a blank in it; {_URI_ACCEPTED}")
    match = _URI.fullmatch(text)
    if match is None:
        where = "a path of one machine only" if text.startswith(("/", "~")) else "a relative path"
        raise SpecError(f"{text!r} is {where}; {_URI_ACCEPTED}")
    scheme, authority, path = match.groups()
    if scheme not in STORAGE_SCHEMES:
        raise SpecError(f"{text!r} is on {scheme}://, which every task cannot reach; {_URI_ACCEPTED}")
    parts = [part for part in (path or "").split("/") if part]
    if not parts:
        raise SpecError(f"{text!r} has no path; {_URI_ACCEPTED}")
    if "." in parts or ".." in parts or any(":" in part for part in parts):
        raise SpecError(f"{text!r} has a '.', '..' or ':' in its path, which HDFS refuses; {_URI_ACCEPTED}")
    return f"{scheme}://{authority}/{'/'.join(parts)}"


def check_local_path(text: str, base_dir: Path) -> str:
    """A file or folder beside job.yaml, relative to it, in normal form (`./lib/` is `lib`)."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or text.startswith("~"):
        raise SpecError(f"{text!r} is not accepted; give a path inside job.yaml's folder, relative to it")
    if not path.parts:
        raise SpecError(f"{text!r} is the whole folder of job.yaml; name what the program needs of it")
    if not (base_dir / path).exists():
        raise SpecError(f"{text!r} does not exist in {base_dir}")
    return str(path)


def check_local_file(text: str, base_dir: Path) -> str:
    """As `check_local_path`, and it must be a file."""
    path = check_local_path(text, base_dir)
    if not (base_dir / path).is_file():
        raise SpecError(f"{text!r} is a folder; give a Python file")
    if path.endswith(".ipynb"):
        raise SpecError(
            f"{text!r} is a notebook; give a Python file (`jupyter nbconvert --to script` makes one)"
        )
    return path
