"""What a training program's text tells without running it: its strategy, and its own modules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfy.errors import SpecError
from tfy.spec import Strategy

_TENSORFLOW = frozenset({"tensorflow", "keras", "tf_keras"})
# A word of the program → the strategy that it tells, and how; the first that is found counts.
_SIGNS: tuple[tuple[str, Strategy], ...] = (
    ("ParameterServerStrategy", "parameter_server"),
    ("ClusterCoordinator", "parameter_server"),
    ("MultiWorkerMirroredStrategy", "multi_worker_mirrored"),
    ("distribute.Server", "none"),
    ("TF_CONFIG", "none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFacts:
    """What was found. `modules` are files and folders beside the program that it imports, sorted."""

    strategy: Strategy
    why: str
    modules: tuple[Path, ...]


def read_program(path: Path) -> ProgramFacts:
    """Reads the program and the modules of its own that it imports.

    Raises `SpecError` where the program is missing or no Python.
    """
    trees = {path: _parse(path)}
    modules: set[Path] = set()
    waiting = [path]
    while waiting:
        for module in _find_modules(trees[waiting.pop()], path.parent):
            if module in modules or module == path:
                continue
            modules.add(module)
            for file in sorted(module.rglob("*.py")) if module.is_dir() else [module]:
                # What is beside the program need not all be for this Python.
                with suppress(SpecError):
                    trees[file] = _parse(file)
                    waiting.append(file)
    strategy, why = _choose_strategy(trees, path.parent)
    return ProgramFacts(strategy=strategy, why=why, modules=tuple(sorted(modules)))


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise SpecError(f"{path}:{error.lineno or 1}: not valid Python: {error.msg}") from error
    except ValueError as error:
        raise SpecError(f"{path}: not valid Python: {error}") from error


def _find_modules(tree: ast.Module, folder: Path) -> Iterator[Path]:
    """What the file imports that lies in the program's folder, where Python looks first."""
    for name in sorted(_list_imports(tree)):
        package, module = folder / name, folder / f"{name}.py"
        if (package / "__init__.py").is_file():
            yield package
        elif module.is_file():
            yield module
        elif any(package.glob("*.py")) and name not in sys.stdlib_module_names:
            # Python takes a folder without __init__.py only where nothing else has the name.
            yield package


def _list_imports(tree: ast.Module) -> set[str]:
    """The first parts of the absolute names that are imported, anywhere in the file."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _choose_strategy(trees: dict[Path, ast.Module], folder: Path) -> tuple[Strategy, str]:
    words = {path: set(_list_words(tree)) for path, tree in trees.items()}
    for word, strategy in _SIGNS:
        for path, found in words.items():
            if word in found:
                return strategy, f"{path.relative_to(folder)} names {word}"
    trains = any(_list_imports(tree) & _TENSORFLOW for tree in trees.values())
    for path, found in words.items():
        if trains and ".fit()" in found:
            return "multi_worker_mirrored", f"{path.relative_to(folder)} calls fit"
    return (
        "parameter_server",
        "the program names no strategy of its own, and runs once so, on the chief; it has the workers "
        "compute through `current_job().strategy()`",
    )


def _list_words(tree: ast.Module) -> Iterator[str]:
    """Names, attributes (`b` and `a.b` of `x.a.b`), short texts, and methods that are called as `.m()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr
            inner = node.value
            if isinstance(inner, ast.Attribute | ast.Name):
                yield f"{inner.attr if isinstance(inner, ast.Attribute) else inner.id}.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield f".{node.func.attr}()"
