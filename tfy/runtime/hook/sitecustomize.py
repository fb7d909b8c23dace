"""Gives an unchanged program `hdfs://`: this folder is on its PYTHONPATH.

Python imports `sitecustomize` at its start. This one waits for the program to import TensorFlow,
and then registers tfy's plugin with it and, in a task, has its counters reported; a program that
never does pays nothing. It also sees to it that a program whose exit handler raised does not end
with 0. If there is another `sitecustomize` further down the path, it runs as it would have without
this one.

Everything here runs in the user's program: nothing heavy may be imported, and the only error
raised is that the plugin could not be registered.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # `typing` itself takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from sys import UnraisableHookArgs
    from types import ModuleType

WATCHED = "tensorflow"
REPORT_VARIABLE = "TFY_REPORT"


class _RegisteringLoader:
    """Runs a module as its own loader would, then registers the plugin."""

    def __init__(self, loader: object) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        # Loaders may read their own fields from the spec.
        spec.loader = self._loader  # type: ignore[assignment]
        try:
            return self._loader.create_module(spec)  # type: ignore[attr-defined, no-any-return]
        finally:
            spec.loader = self  # type: ignore[assignment]

    def exec_module(self, module: ModuleType) -> None:
        # From here on the module looks as if it had been loaded without us.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # type: ignore[assignment]
        module.__loader__ = self._loader  # type: ignore[assignment]
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        _register()


class _TensorFlowFinder:
    """Finds `tensorflow` by the other finders, and has the plugin registered after its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != WATCHED:
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _RegisteringLoader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


def _register() -> None:
    try:
        from tfy.errors import TfyError
        from tfy.runtime.filesystem import register
    except ImportError as error:
        raise ImportError(f"tfy's hdfs:// plugin for TensorFlow cannot be imported: {error}") from error
    try:
        register()
    except TfyError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise ImportError(f"tfy's hdfs:// plugin for TensorFlow: {error.message}{hint}") from error
    if os.environ.get(REPORT_VARIABLE):
        from tfy.runtime.program_start import begin_program

        begin_program(os.environ)


def _run_next() -> None:
    """Runs the `sitecustomize` that this one stands before, if there is one."""
    for entry in sys.path:
        spec = PathFinder.find_spec("sitecustomize", [entry])
        if spec is None or spec.loader is None or spec.origin == __file__:
            continue
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
        return


def _fail_with_atexit() -> None:
    """Python ends with 0 though an exit handler raised; a job must not succeed by that."""
    raised = []
    show = sys.unraisablehook

    def note(unraisable: UnraisableHookArgs) -> None:
        show(unraisable)
        if "atexit" in (unraisable.err_msg or ""):
            raised.append(unraisable.err_msg)

    def leave() -> None:
        if raised:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    sys.unraisablehook = note
    # The first to be registered is the last to run.
    atexit.register(leave)


sys.meta_path.insert(0, _TensorFlowFinder())
_fail_with_atexit()
_run_next()
