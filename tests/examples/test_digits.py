"""The digits example: what its README claims about the two programs holds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfy.load import load

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
EXPECTED_ACCURACY = 0.95


def run(*command: str, cwd: Path = DIGITS, timeout_s: float = 120) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


PAIRS = [("single.py", "train.py"), ("single_fit.py", "train_sync.py")]


def changed_lines(old: str, new: str) -> tuple[int, int]:
    diff = ["git", "diff", "--no-index", "--numstat", old, new]
    done = subprocess.run(diff, cwd=DIGITS, capture_output=True, text=True)
    added, deleted, _ = done.stdout.split(maxsplit=2)
    return int(added), int(deleted)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_fewer_than_ten_lines_differ(old: str, new: str) -> None:
    added, deleted = changed_lines(old, new)
    assert 0 < added < 10
    assert 0 < deleted < 10
    page = (ROOT / "docs" / "move.md").read_text()
    (row,) = [line for line in page.splitlines() if f"[{old}]" in line]
    assert row.endswith(f"| {added} | {deleted} |")


def test_the_shown_diff_is_the_real_one() -> None:
    """Each changed line on docs/move.md is one of `git diff`'s."""
    diff = ["git", "diff", "--no-index", "single_fit.py", "train_sync.py"]
    done = subprocess.run(diff, cwd=DIGITS, capture_output=True, text=True)
    shown = (ROOT / "docs" / "move.md").read_text().split("```diff\n")[1].split("```")[0].splitlines()
    assert [line for line in shown if line.startswith("+")]
    for line in shown:
        if line.startswith(("+", "-")):
            assert line in done.stdout.splitlines(), line


def test_the_examples_are_formatted() -> None:
    run(sys.executable, "-m", "ruff", "format", "--check", ".")
    run(sys.executable, "-m", "ruff", "check", ".")


@pytest.mark.parametrize("name", [old for old, _ in PAIRS])
def test_single_is_plain_tensorflow_of_some_size(name: str) -> None:
    text = (DIGITS / name).read_text()
    assert len([line for line in text.splitlines() if line.strip()]) >= 55
    assert "tfy" not in text
    assert "tf.distribute" not in text


def test_the_readme_names_each_file() -> None:
    readme = (DIGITS / "README.md").read_text()
    for file in DIGITS.iterdir():
        assert file.name in readme or file.name in ("README.md", "__pycache__")


@pytest.mark.parametrize(("file", "name"), [("job.yaml", "digits"), ("job-sync.yaml", "digits-sync")])
def test_the_job_loads(file: str, name: str) -> None:
    assert load(DIGITS / file, {}).name == name


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    # Twice: files that are there are written anew.
    for _ in range(2):
        said = run(sys.executable, str(DIGITS / "prepare.py"), "--out", str(folder))
    assert "1438 images in 8 files" in said
    assert "359 images in 2 files" in said
    return folder


@pytest.mark.timeout(240)
def test_prepare_writes_a_split(data: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    records = {}
    for part, files in (("train", 8), ("test", 2)):
        names = sorted(str(file) for file in (data / part).iterdir())
        assert len(names) == files
        records[part] = [record.numpy() for record in tf.data.TFRecordDataset(names)]
    assert len(records["train"]) + len(records["test"]) == 1797
    assert not set(records["train"]) & set(records["test"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("program", [old for old, _ in PAIRS])
def test_single_learns_to_read(data: Path, tmp_path: Path, program: str) -> None:
    patterns = ["--train", f"{data}/train/*.tfrecord", "--test", f"{data}/test/*.tfrecord"]
    said = run(sys.executable, str(DIGITS / program), *patterns, "--model-dir", str(tmp_path / "model"))
    accuracy = re.findall(r"(?:test accuracy |'val_accuracy': )([0-9.]+)", said)
    assert float(accuracy[-1]) >= EXPECTED_ACCURACY
    assert list((tmp_path / "model").glob("ckpt-5*"))
