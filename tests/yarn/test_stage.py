"""What is packed for the containers."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.job_files import SMALLEST
from tfy.errors import StartError
from tfy.load import load
from tfy.spec import JobSpec
from tfy.storage.archives import pack
from tfy.yarn import stage


def make_spec(folder: Path, program: str, files: str = "[]") -> JobSpec:
    text = SMALLEST.replace("program: train.py", f"program: {program}\nfiles: {files}")
    (folder / "job.yaml").write_text(text)
    return load(folder / "job.yaml", {})


def test_the_program_and_its_files_keep_their_places(tmp_path: Path) -> None:
    for name in ("src/train.py", "lib/a.py", "lib/deep/b.txt", "lib/__pycache__/a.pyc", "left.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = stage.list_program(make_spec(tmp_path, "src/train.py", "[lib/]"))
    assert sorted(name for _, name in found) == ["lib/a.py", "lib/deep/b.txt", "src/train.py"]


def test_tfys_own_code_comes_with_the_plugin() -> None:
    names = [name for _, name in stage.list_code()]
    assert "tfy/runtime/__main__.py" in names
    assert "tfy/runtime/hook/sitecustomize.py" in names
    assert any(name.startswith("tfy/runtime/_hdfs") and name.endswith(".so") for name in names)
    assert not any("__pycache__" in name for name in names)


def test_without_the_plugin_nothing_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [path for path, _ in stage.list_code() if path.suffix != ".so"]
    monkeypatch.setattr(stage, "walk_files", lambda _folder: sources)
    with pytest.raises(StartError, match="the HDFS plugin is missing"):
        stage.list_code()


def test_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    other = tmp_path / "a.txt"
    other.write_text("a")
    pack(first, [(script, "run.sh"), (other, "a.txt")])
    other.touch()
    pack(second, [(other, "a.txt"), (script, "run.sh")])
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as packed:
        assert packed.namelist() == ["a.txt", "run.sh"]
        assert (packed.getinfo("run.sh").external_attr >> 16) & 0o777 == 0o755
