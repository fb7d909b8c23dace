"""Real workers under MultiWorkerMirroredStrategy, of which one finds other checkpoints than the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.checkpoint_makers import cut, data_file, save_managed
from tests.runtime.sync_ports import free_addresses
from tfy.runtime.checkpoints import restore_newest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytestmark = pytest.mark.timeout(240)


@contextmanager
def workers(folders: list[Path], modes: list[str], wait_s: float) -> Iterator[list[subprocess.Popen[str]]]:
    """One process for each folder, which is its working directory; they wait for their input to end."""
    addresses = free_addresses(len(folders))
    with ExitStack() as running:
        processes = []
        for index, (folder, mode) in enumerate(zip(folders, modes, strict=True)):
            config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            process = subprocess.Popen(
                [sys.executable, str(HERE / "sync_restorer.py"), mode, str(wait_s)],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                    "TF_CONFIG": json.dumps(config),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(folder / "log").open("w"),
                text=True,
            )
            running.enter_context(process)
            running.callback(process.kill)
            processes.append(process)
        yield processes


def told(process: subprocess.Popen[str], folder: Path) -> str:
    """The line that a worker prints while it still waits; its log where it ends without one."""
    timer = threading.Timer(120, process.kill)
    timer.start()
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    timer.cancel()
    assert line, (folder / "log").read_text()[-4000:]
    return line


@pytest.fixture
def folders(tf: Any, tmp_path: Path) -> list[Path]:
    """Where two workers find the same two checkpoints under the same names."""
    made = [tmp_path / "a", tmp_path / "b"]
    for folder in made:
        save_managed(tf, folder / "model", [1, 2])
    return made


@pytest.mark.parametrize("mode", ["inside", "outside"])
def test_workers_that_restored_the_same_go_on(folders: list[Path], mode: str) -> None:
    with workers(folders, [mode] * 2, wait_s=100) as running:
        assert [told(*each) for each in zip(running, folders, strict=True)] == ["model/ckpt-2"] * 2


@pytest.mark.parametrize("mode", ["inside", "outside"])
def test_workers_that_restored_different_ones_fail(folders: list[Path], mode: str) -> None:
    cut(data_file(f"{folders[1]}/model/ckpt-2"))
    with workers(folders, [mode] * 2, wait_s=100) as running:
        first, second = (told(*each) for each in zip(running, folders, strict=True))
    head = "the workers restored different checkpoints: this one"
    assert first == f"{head} model/ckpt-2, and another one or none in replica 1"
    assert second == f"{head} model/ckpt-1, and another one or none in replica 0"


def test_a_worker_that_restores_alone_does_not_wait_for_ever(folders: list[Path]) -> None:
    with workers(folders, ["outside", "last"], wait_s=5) as running:
        line = told(running[0], folders[0])
    assert line.startswith("the workers could not compare which checkpoints they restored: "), line


def test_alone_there_is_nobody_to_agree_with(tf: Any, folders: list[Path]) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(tf.zeros([100])))
    assert restore_newest(checkpoint, f"{folders[0]}/model", wait_s=1) == f"{folders[0]}/model/ckpt-2"
