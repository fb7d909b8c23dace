"""Nothing that `unequal` may say hangs a collective: two real workers, 100 and 101 records, batch 100."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.input_files import make_shares, write_files
from tests.runtime.test_input_cluster import free_addresses
from tfy.contract import to_json

pytest.importorskip("tensorflow")

WORKERS = 2
PROGRAM = Path(__file__).parent / "input_mirrored.py"
ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0


def run_workers(folder: Path, scenarios: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What each worker's run of the scenarios gave; both end within the limit, or the test fails."""
    asked = folder / "scenarios.json"
    asked.write_text(json.dumps(scenarios))
    addresses = free_addresses(WORKERS)
    results = [folder / f"result-{index}.json" for index in range(WORKERS)]
    with ExitStack() as running:
        processes = []
        for index, result in enumerate(results):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), str(result), str(asked)],
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "TF_CONFIG": json.dumps(task),
                    "TFY_TASK_INDEX": str(index),
                    "TF_CPP_MIN_LOG_LEVEL": "2",
                },
                stderr=(folder / f"log-{index}").open("w"),
            )
            running.enter_context(process)
            running.callback(process.kill)
            processes.append(process)
        codes = [process.wait(LIMIT_S) for process in processes]
    logs = [(folder / f"log-{index}").read_text()[-3000:] for index in range(WORKERS)]
    assert codes == [0] * WORKERS, "\n".join(logs)
    return [json.loads(result.read_text()) for result in results]


@pytest.mark.timeout(240)
def test_every_worker_makes_the_same_steps_and_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_files(data, [100, 101])

    def scenario(unequal: str, how: str, **other: Any) -> dict[str, Any]:
        shares = json.loads(to_json(make_shares(data, WORKERS, unequal=unequal)))
        base = {"batch": 100, "remainder": False, "epochs": 2, "most": 9}
        return {"shares": shares, "how": how, **base, **other}

    scenarios = {
        "drop, own loop": scenario("drop", "own"),
        "drop, distributed": scenario("drop", "distributed"),
        "drop, distributed, small batches": scenario("drop", "distributed", batch=30),
        "drop, distributed, no remainder": scenario("drop", "distributed", remainder=True),
        "refuse": scenario("refuse", "own"),
        "refuse, equal": scenario("refuse", "own", batch=60),
        "refuse, equal, distributed": scenario("refuse", "distributed", batch=60),
        "repeat, own loop": scenario("repeat", "own"),
        "repeat, distributed": scenario("repeat", "distributed"),
    }
    workers = run_workers(tmp_path, list(scenarios.values()))
    first, second = (dict(zip(scenarios, found, strict=True)) for found in workers)
    for name in scenarios:
        # The sums are of both workers, so equal lists are the same steps made together.
        assert first[name].get("steps") == second[name].get("steps"), name
        assert first[name].get("error") == second[name].get("error"), name
    assert first["drop, own loop"]["steps"] == [[200], [200]]
    assert first["drop, own loop"]["own"] == second["drop, own loop"]["own"] == [100, 100]
    assert "worker:1 makes 1 of 100 records; worker:0 makes 2 of 101 records" in first["refuse"]["error"]
    # A distributed dataset splits each batch among the replicas, so each trains on halves.
    assert first["drop, distributed"]["steps"] == [[100, 100]] * 2
    assert first["drop, distributed, small batches"]["own"] == [101, 101]
    assert first["refuse, equal"]["own"] == [101, 101]
    assert second["refuse, equal"]["own"] == [100, 100]
    assert [len(steps) for steps in first["repeat, own loop"]["steps"]] == [9, 9]
    assert [len(steps) for steps in first["repeat, distributed"]["steps"]] == [9, 9]
