"""tfy runs TensorFlow training on a Hadoop YARN cluster from one YAML file.

From Python: `tfy.submit("job.yaml")` returns a `tfy.Job` (docs/python.md).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfy.door import Job, find, jobs, submit
    from tfy.errors import (
        JobFailedError,
        SpecError,
        StartError,
        TfyError,
        UnreachableError,
        WaitLimitError,
    )
    from tfy.states import JobState
    from tfy.yarn.follow import JobView
    from tfy.yarn.logs_model import LogLine

__all__ = [
    "Job",
    "JobFailedError",
    "JobState",
    "JobView",
    "LogLine",
    "SpecError",
    "StartError",
    "TfyError",
    "UnreachableError",
    "WaitLimitError",
    "find",
    "jobs",
    "submit",
]

_ELSEWHERE = {
    "JobState": "tfy.states",
    "JobView": "tfy.yarn.follow",
    "LogLine": "tfy.yarn.logs_model",
}
_DOOR = ("Job", "find", "jobs", "submit")

if not TYPE_CHECKING:
    # Hidden from type checkers, so that they know which names there are.
    def __getattr__(name: str) -> Any:
        """The public names, loaded when they are asked for: every task on the cluster imports tfy too."""
        if name not in __all__:
            raise AttributeError(f"module 'tfy' has no attribute {name!r}")
        module = _ELSEWHERE.get(name, "tfy.door" if name in _DOOR else "tfy.errors")
        return getattr(importlib.import_module(module), name)
