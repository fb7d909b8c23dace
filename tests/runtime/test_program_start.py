"""What is done in a program before it goes on: an unchanged one resumes from what is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tfy
from tests.plans import EVALUATOR, make_mirrored_plan, make_small_plan
from tfy.contract import to_json
from tfy.plan_model import Plan
from tfy.runtime.filesystem import hook_path
from tfy.runtime.program_start import may_repair

SMALL = make_small_plan()
OWN = replace(SMALL, strategy="none", tasks=tuple(replace(task, runs="program") for task in SMALL.tasks))
MIRRORED = make_mirrored_plan(evaluator=True)


@pytest.mark.parametrize(
    ("plan", "task", "expected"),
    [
        (SMALL, "chief:0", True),
        (SMALL, "worker:0", False),
        (replace(SMALL, tasks=(*SMALL.tasks, EVALUATOR)), "evaluator:0", False),
        (replace(SMALL, checkpoint_dir=None), "chief:0", False),
        (MIRRORED, "worker:0", True),
        (MIRRORED, "worker:1", True),
        (MIRRORED, "evaluator:0", False),
        (OWN, "chief:0", True),
        (OWN, "worker:0", False),
        (OWN, "ps:0", False),
    ],
)
def test_who_may_mend_the_state_file(plan: Plan, task: str, expected: bool) -> None:
    task_type, _, index = task.partition(":")
    assert may_repair(plan, task_type, int(index)) is expected


SAVE = """
import os, shutil, sys
import tensorflow as tf
folder = sys.argv[1]
count = tf.Variable(0)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(count=count), folder, max_to_keep=3)
manager.save(), count.assign(1), manager.save()
with open(folder + "/ckpt-2.data-00000-of-00001", "wb"):
    pass  # The last save was cut off.
"""
RESUME = "import tensorflow as tf, sys; print(tf.train.latest_checkpoint(sys.argv[1]))"


def run(code: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.timeout(300)
def test_an_unchanged_program_resumes_from_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    folder = tmp_path / "model"
    run(SAVE, folder)
    (tmp_path / "plan.json").write_bytes(to_json(replace(SMALL, checkpoint_dir=str(folder))))
    root = Path(tfy.__file__).parent.parent
    started = {
        "PYTHONPATH": os.pathsep.join(map(str, (hook_path(), root))),
        "TFY_PLAN": str(tmp_path / "plan.json"),
        "TFY_REPORT": str(tmp_path / "report"),
        "TFY_TASK_TYPE": "chief",
        "TFY_TASK_INDEX": "0",
    }
    # What the program starts itself must leave the state file alone: here somebody else's child.
    assert run(RESUME, folder, **started, TFY_NODE_PID="1") == f"{folder}/ckpt-2"
    assert run(RESUME, folder, **started, TFY_NODE_PID=str(os.getpid())) == f"{folder}/ckpt-1"
    assert (folder / "ckpt-2.index").exists()


@pytest.mark.timeout(120)
def test_a_program_goes_on_though_it_cannot_be_looked_after(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    root = Path(tfy.__file__).parent.parent
    said = run(
        "import tensorflow as tf, sys; print('goes on')",
        tmp_path,
        PYTHONPATH=os.pathsep.join(map(str, (hook_path(), root))),
        TFY_PLAN=str(tmp_path / "gone.json"),
        TFY_REPORT=str(tmp_path / "report"),
        TFY_NODE_PID=str(os.getpid()),
    )
    assert said == "goes on"
