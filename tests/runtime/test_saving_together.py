"""Saving by several tasks: real workers under MultiWorkerMirroredStrategy, variables on several ps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.checkpoint_makers import cut, data_file
from tests.runtime.sync_ports import free_addresses
from tfy.runtime.bundle import find_flaw
from tfy.runtime.checkpoint_files import list_checkpoints

pytest.importorskip("tf_keras")

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[2]
LIMIT_S = 240


def environ(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": "1",
        **more,
    }


def run_workers(folder: Path, steps: int) -> list[dict[str, Any]]:
    """What each of two workers told at its end."""
    workers = free_addresses(2)
    results = [folder / f"result-{index}.json" for index in range(2)]
    with ExitStack() as running:
        processes = []
        for index, result in enumerate(results):
            result.unlink(missing_ok=True)
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            home = folder / f"tmp-{index}"
            home.mkdir(exist_ok=True)
            log = running.enter_context((folder / f"log-{index}").open("w"))
            process = subprocess.Popen(
                [sys.executable, str(HERE / "sync_saver.py"), str(folder), str(result), str(steps)],
                env=environ(TF_CONFIG=json.dumps(config), TMPDIR=str(home)),
                stdout=log,
                stderr=log,
            )
            running.enter_context(process)
            running.callback(process.kill)
            processes.append(process)
        for index, process in enumerate(processes):
            assert process.wait(timeout=LIMIT_S) == 0, (folder / f"log-{index}").read_text()[-4000:]
    return [json.loads(result.read_text()) for result in results]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.timeout(540)
def test_workers_resume_from_the_leads_checkpoint_and_only_it_writes(tf: Any, tmp_path: Path) -> None:
    first = run_workers(tmp_path, steps=3)
    assert [(told["restored"], told["begin"], told["end"]) for told in first] == [(None, 0, 3)] * 2
    model = tmp_path / "model"
    assert [saved.name for saved in list_checkpoints(str(model))] == ["ckpt-3", "ckpt-2"]
    cut(data_file(f"{model}/ckpt-3"))
    second = run_workers(tmp_path, steps=2)
    for told in second:
        assert told["seen"] == told["restored"] == f"{model}/ckpt-2"
        assert (told["begin"], told["end"]) == (2, 4)
    assert second[0]["weights"][:2] == second[1]["weights"][:2]
    # The lead saved over the damaged one, and went on.
    assert [saved.name for saved in list_checkpoints(str(model))] == ["ckpt-4", "ckpt-3"]
    assert find_flaw(f"{model}/ckpt-3") is None
    assert [told["exported"] for told in second] == [f"{tmp_path}/export/2", None]
    assert names(tmp_path / "export") == ["1", "2"]
    # What the other worker saved is gone with it.
    assert [names(tmp_path / f"tmp-{index}") for index in range(2)] == [[], []]
    signature = tf.saved_model.load(f"{tmp_path}/export/2").signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    assert signature(**{name: tf.ones([2, 4])}).popitem()[1].shape == [2, 3]


@pytest.mark.timeout(300)
def test_a_variable_partitioned_over_two_ps_is_checked_restored_and_exported(tf: Any, tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "partitioned_saver.py"), str(tmp_path)]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr[-4000:]
    prefix = f"{tmp_path}/model/ckpt-2"
    assert find_flaw(prefix) is None
    shards = sorted((tmp_path / "model").glob("ckpt-2.data-*"))
    assert len(shards) > 1
    flaw = find_flaw(f"{tmp_path}/model/ckpt-3")
    assert flaw
    assert not flaw.unfinished
    # An evaluator has no ps: there the same variable is one piece.
    whole = tf.Variable(tf.zeros([100, 4]))
    tf.train.Checkpoint(v=whole).restore(prefix).expect_partial()
    assert (whole.numpy() == 2).all()
    signature = tf.saved_model.load(f"{tmp_path}/export/1").signatures["serving_default"]
    assert float(signature(x=tf.constant([0, 99], tf.int64))["y"]) == 16
