"""The reference of job.yaml's keys as Markdown, made from the one table of the keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tfy.job_keys import JOB_KEYS
from tfy.yaml_marks import join_path

BEGIN = "<!-- The keys, by `make docs` from tfy/job_keys.py and tfy/task_keys.py -->"
END = "<!-- The end of the keys -->"


def make_reference() -> str:
    """A table of every key with its default and its meaning, in the order of the file."""
    rows = "\n".join(_list_rows(""))
    return f"| key | default | |\n|---|---|---|\n{rows}\n"


def insert_reference(page: str) -> str:
    """`page` with the reference between its marks, in place of an older one."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{make_reference()}{END}{tail}"


def _list_rows(path: str) -> Iterator[str]:
    for key in JOB_KEYS[path].entries:
        name = join_path(path, key.name)
        default = key.default if key.default_is_told else f"`{key.default}`"
        yield f"| `{name}` | {default} | {key.text} |"
        if name in JOB_KEYS:
            yield from _list_rows(name)
    for refused, reason in JOB_KEYS[path].refused:
        yield f"| `{join_path(path, refused)}` | refused | {reason} |"
    for later in JOB_KEYS[path].later:
        yield f"| `{join_path(path, later)}` | refused | not supported yet |"
