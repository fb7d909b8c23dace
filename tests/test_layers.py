"""Who may import whom, held as data (design: rooms), and what no module may do.

Every import counts, also those inside functions and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST_FILE = 320
CHANGING = (
    "update",
    "setdefault",
    "pop",
    "popitem",
    "clear",
    "append",
    "extend",
    "insert",
    "remove",
    "reverse",
)

BASE = (
    "bounded",
    "channel",
    "errors",
    "units",
    "states",
    "contract",
    "plan_model",
    "records",
    "shares",
    "epoch",
    "paths",
    "storage",
)
SPEC = (
    "spec",
    "load",
    "load_mapping",
    "job_reference",
    "job_template",
    "program_text",
    "read_tasks",
    "yaml_marks",
    "yaml_fields",
    "job_keys",
    "task_keys",
    "job_values",
)

# Room → what its modules may import of tfy, besides their own room. A room is the first part of a
# module's name inside tfy, or several that belong together.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "base": (),
    "spec": ("base",),
    "plan": ("base", "spec"),
    "yarn": ("base", "spec", "plan"),
    "door": ("base", "spec", "plan", "yarn"),
    "cli": ("base", "spec", "plan", "yarn", "door"),
    "runtime": ("base",),
}
ROOM_OF = {
    **dict.fromkeys(BASE, "base"),
    **dict.fromkeys(SPEC, "spec"),
    "plan": "plan",
    "rdma_rules": "plan",
    "yarn": "yarn",
    "door": "door",
    "cli": "cli",
    "__main__": "cli",
    "runtime": "runtime",
}

# A foreign package → the modules (or rooms) of tfy that may import it.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "skein": ("tfy.yarn.client", "tfy.yarn.convert", "tfy.runtime.rendezvous"),
    "py4j": ("tfy.yarn.logs_java", "tfy.yarn.logs_aggregated", "tfy.yarn.logs_open"),
    "pyspark": ("tfy.runtime.spark",),
    "hdfs_native": ("tfy.storage",),
    "hdfs": ("tfy.storage",),
    "fsspec": ("tfy.storage",),
    "pyarrow": ("tfy.storage",),
    "tensorflow": ("tfy.runtime",),
    "click": ("tfy.cli",),
    "rich": ("tfy.cli",),
    "yaml": ("tfy.yaml_marks",),
}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules() -> dict[str, Path]:
    """Every module of tfy by its dotted name."""
    found = {}
    for path in sorted((ROOT / "tfy").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(path: Path) -> Iterator[str]:
    """The dotted names that a file imports; `from a import b` gives `a.b`."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inside(name: str, parent: str) -> bool:
    return name == parent or name.startswith(f"{parent}.")


def room(name: str) -> str | None:
    """The room of a dotted name of tfy; None for tfy itself."""
    parts = name.split(".")
    return ROOM_OF[parts[1]] if len(parts) > 1 else None


@pytest.mark.parametrize("name", MODULES)
def test_layers_go_one_way(name: str) -> None:
    own = room(name)
    for target in imported(MODULES[name]):
        if inside(target, "tfy") and own is not None:
            assert room(target) in (None, own, *MAY_IMPORT[own]), f"{name} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_foreign_things_have_one_door(name: str) -> None:
    for target in imported(MODULES[name]):
        doors = ONLY_IN.get(target.partition(".")[0])
        assert doors is None or any(inside(name, door) for door in doors), f"{name} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_only_render_prints(name: str) -> None:
    if name == "tfy.cli.render":
        return
    for node in ast.walk(parse(MODULES[name])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{name}:{node.lineno}: print"


def changes(path: Path, owner: str) -> list[str]:
    """Where a file changes the mapping or list `owner`, as `os.environ`, in place or by assignment."""
    found = []
    for node in ast.walk(parse(path)):
        if not isinstance(node, ast.Attribute | ast.Subscript):
            continue
        stored = not isinstance(node.ctx, ast.Load)
        called = (
            isinstance(node, ast.Attribute) and node.attr in CHANGING and ast.unparse(node.value) == owner
        )
        if called or (stored and ast.unparse(node).startswith(owner)):
            found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("owner", ["os.environ", "sys.path"])
@pytest.mark.parametrize("name", MODULES)
def test_nobody_changes_the_environment_or_the_path(name: str, owner: str) -> None:
    assert changes(MODULES[name], owner) == []


@pytest.mark.parametrize("text", ["os.environ['A'] = 'b'", "os.environ.update(A='b')", "del os.environ['A']"])
def test_a_change_is_seen(text: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f"import os\n{text}\nprint(os.environ.get('A'), os.environ['A'])\n")
    assert len(changes(tmp_path / "m.py", "os.environ")) == 1


@pytest.mark.parametrize("name", MODULES)
def test_nobody_has_globals(name: str) -> None:
    for node in ast.walk(parse(MODULES[name])):
        assert not isinstance(node, ast.Global), f"{name}:{node.lineno}: global"


@pytest.mark.parametrize(
    "path",
    [*MODULES.values(), *sorted((ROOT / "tests").rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_file_fits_in_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_every_room_has_its_rule() -> None:
    assert {room(name) for name in MODULES} - {None} == set(MAY_IMPORT)
    for doors in ONLY_IN.values():
        assert all(door in MODULES for door in doors)
