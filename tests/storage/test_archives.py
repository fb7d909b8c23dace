"""What is packed: all of it, or an error; never less."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfy.errors import SpecError
from tfy.storage.archives import walk_files


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_files_behind_links_come_along(tmp_path: Path) -> None:
    make(tmp_path, "lib/a.py", "real/b.py")
    (tmp_path / "lib" / "sub").symlink_to(tmp_path / "real")
    (tmp_path / "lib" / "c.py").symlink_to(tmp_path / "real" / "b.py")
    found = [path.relative_to(tmp_path).as_posix() for path in walk_files(tmp_path / "lib")]
    assert found == ["lib/a.py", "lib/c.py", "lib/sub/b.py"]


def test_compiled_python_and_hidden_folders_stay_behind(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "a.pyc", "__pycache__/a.cpython-311.pyc", ".git/config", ".env", "x/.venv/y")
    assert [path.name for path in walk_files(tmp_path)] == [".env", "a.py"]


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    with pytest.raises(SpecError, match="gone: a link that leads nowhere"):
        walk_files(tmp_path)


def test_a_link_in_a_circle_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "deep/a.py")
    (tmp_path / "deep" / "again").symlink_to(tmp_path)
    with pytest.raises(SpecError, match="again: a link that leads in a circle"):
        walk_files(tmp_path)
