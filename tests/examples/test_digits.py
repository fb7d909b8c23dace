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


def changed_lines() -> tuple[int, int]:
    diff = ["git", "diff", "--no-index", "--numstat", "single.py", "train.py"]
    done = subprocess.run(diff, cwd=DIGITS, capture_output=True, text=True)
    added, deleted, _ = done.stdout.split(maxsplit=2)
    return int(added), int(deleted)


def test_fewer_than_ten_lines_differ() -> None:
    added, deleted = changed_lines()
    assert 0 < added < 10
    assert 0 < deleted < 10


def test_the_examples_are_formatted() -> None:
    run(sys.executable, "-m", "ruff", "format", "--check", ".")
    run(sys.executable, "-m", "ruff", "check", ".")


def test_single_is_plain_tensorflow_of_some_size() -> None:
    text = (DIGITS / "single.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) >= 60
    assert "tfy" not in text
    assert "tf.distribute" not in text


def test_the_readme_names_each_file() -> None:
    readme = (DIGITS / "README.md").read_text()
    for file in DIGITS.iterdir():
        assert file.name in readme or file.name in ("README.md", "__pycache__")


def test_the_job_loads() -> None:
    job = load(DIGITS / "job.yaml", {})
    assert job.name == "digits"


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
def test_single_learns_to_read(data: Path, tmp_path: Path) -> None:
    patterns = ["--train", f"{data}/train/*.tfrecord", "--test", f"{data}/test/*.tfrecord"]
    said = run(sys.executable, str(DIGITS / "single.py"), *patterns, "--model-dir", str(tmp_path / "model"))
    accuracy = re.findall(r"test accuracy ([0-9.]+)", said)
    assert float(accuracy[-1]) >= EXPECTED_ACCURACY
    assert list((tmp_path / "model").glob("ckpt-5*"))
