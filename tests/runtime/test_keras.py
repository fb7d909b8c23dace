"""Which Keras works under which strategy: what docs/job.md says, and what tfy chooses by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.sync_ports import free_addresses

pytest.importorskip("tensorflow")
pytest.importorskip("tf_keras")

PROGRAM = Path(__file__).parent / "keras_program.py"
LIMIT_S = 150.0


def run_cluster(folder: Path, cluster: dict[str, list[str]], legacy: str) -> list[dict[str, Any]]:
    """What each task that trains found; servers are stopped when the others have ended."""
    with ExitStack() as running:
        trains, results = [], []
        for task_type in cluster:
            for index in range(len(cluster[task_type])):
                name = f"{task_type}-{index}"
                process = subprocess.Popen(
                    [sys.executable, str(PROGRAM), str(folder / f"{name}.json")],
                    env={
                        **os.environ,
                        "TF_CONFIG": json.dumps(
                            {"cluster": cluster, "task": {"type": task_type, "index": index}}
                        ),
                        "TF_USE_LEGACY_KERAS": legacy,
                        "TF_CPP_MIN_LOG_LEVEL": "2",
                    },
                    stderr=running.enter_context((folder / f"{name}.log").open("w")),
                )
                running.enter_context(process)
                running.callback(process.kill)
                if task_type == "chief" or "chief" not in cluster:
                    trains.append(process)
                    results.append(folder / f"{name}.json")
        codes = [process.wait(LIMIT_S) for process in trains]
    logs = [path.read_text()[-2000:] for path in sorted(folder.glob("*.log"))]
    assert codes == [0] * len(codes), "\n".join(logs)
    return [json.loads(result.read_text()) for result in results]


def run_mirrored(folder: Path, legacy: str) -> dict[str, Any]:
    """What both workers found alike, and the same weights: they summed their gradients."""
    first, second = run_cluster(folder, {"worker": free_addresses(2)}, legacy)
    assert first["weights"]
    assert first["weights"] == second["weights"]
    assert (first["loop"], first["fit"][:10]) == (second["loop"], second["fit"][:10])
    return first


def run_parameter_server(folder: Path, legacy: str) -> dict[str, Any]:
    chief, ps, worker = free_addresses(3)
    (found,) = run_cluster(folder, {"chief": [chief], "ps": [ps], "worker": [worker]}, legacy)
    return found


@pytest.mark.timeout(300)
def test_tf_keras_does_both_under_multi_worker_mirrored(tmp_path: Path) -> None:
    found = run_mirrored(tmp_path, "1")
    assert (found["loop"], found["fit"]) == ("ok", "ok")


@pytest.mark.timeout(300)
def test_keras_3_has_its_loop_and_no_fit_under_multi_worker_mirrored(tmp_path: Path) -> None:
    found = run_mirrored(tmp_path, "0")
    assert found["loop"] == "ok"
    assert "PerReplica" in found["fit"]


@pytest.mark.timeout(300)
def test_tf_keras_does_both_under_parameter_server(tmp_path: Path) -> None:
    found = run_parameter_server(tmp_path, "1")
    assert (found["loop"], found["fit"]) == ("ok", "ok")


@pytest.mark.timeout(300)
def test_keras_3_has_its_loop_and_no_fit_under_parameter_server(tmp_path: Path) -> None:
    found = run_parameter_server(tmp_path, "0")
    assert found["loop"] == "ok"
    assert "ClusterCoordinator.create_per_worker_dataset" in found["fit"]
