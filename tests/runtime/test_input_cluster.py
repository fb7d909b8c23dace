"""Shares of the input on one parameter server and two workers that are processes of their own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.plans import make_small_plan
from tests.runtime.input_files import make_shares, write_files
from tests.waiting import wait_until
from tfy.contract import to_json
from tfy.runtime.filesystem import hook_path
from tfy.runtime.report import ReportReader
from tfy.shares import InputShares, Split, make_input_shares

pytest.importorskip("tensorflow")

WORKERS = 2
SERVER = "import os, sys; from tfy.runtime.server import run_server; sys.exit(run_server(os.environ))"
CHIEF = Path(__file__).parent / "input_chief.py"
ROOT = Path(__file__).parents[2]


def free_addresses(count: int) -> list[str]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in sockets]


@dataclass(frozen=True)
class Cluster:
    """One ps and the workers, running; each task's files are in a folder of its own."""

    folder: Path
    addresses: dict[str, list[str]]

    def environ(self, task_type: str, index: int) -> dict[str, str]:
        """What tfy gives a task."""
        plan = self.folder / "plan.json"
        plan.write_bytes(to_json(make_small_plan(workers=WORKERS)))
        task = {"type": task_type, "index": index}
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (hook_path(), ROOT))),
            "TF_CONFIG": json.dumps({"cluster": self.addresses, "task": task}),
            "TFY_PLAN": str(plan),
            "TFY_TASK_TYPE": task_type,
            "TFY_TASK_INDEX": str(index),
            "TFY_REPORT": str(self.folder / f"report-{task_type}-{index}"),
        }

    def steps(self) -> list[int]:
        """The batches that each worker's process says that it drew."""
        return [ReportReader(self.folder / f"report-worker-{index}").poll().steps for index in range(WORKERS)]

    def run_chief(self, scenarios: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What each scenario gave, in one chief."""
        result, asked = self.folder / "result.json", self.folder / "scenarios.json"
        asked.write_text(json.dumps(scenarios))
        command = [sys.executable, str(CHIEF), str(result), str(asked)]
        done = subprocess.run(
            command, env=self.environ("chief", 0), stderr=subprocess.PIPE, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr[-4000:]
        answer: list[dict[str, Any]] = json.loads(result.read_text())
        return answer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    ps, chief, *workers = free_addresses(2 + WORKERS)
    cluster = Cluster(folder, {"ps": [ps], "chief": [chief], "worker": workers})
    with ExitStack() as running:
        for task_type, index in (("ps", 0), *(("worker", index) for index in range(WORKERS))):
            log = running.enter_context((folder / f"log-{task_type}-{index}").open("w"))
            server = subprocess.Popen(
                [sys.executable, "-c", SERVER], env=cluster.environ(task_type, index), stdout=log, stderr=log
            )
            running.enter_context(server)
            running.callback(server.kill)
        yield cluster


def as_data(shares: InputShares) -> Any:
    """The shares as a scenario holds them."""
    return json.loads(to_json(shares))


@pytest.mark.timeout(240)
def test_workers_read_shares_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    files = write_files(tmp_path / "files", [10] * 5)
    (single,) = write_files(tmp_path / "single", [101])
    shares = make_shares(tmp_path / "files", WORKERS)
    by_file, by_record = cluster.run_chief(
        [
            {"shares": as_data(shares), "least_steps": 12, "batch": 5, "slow": True},
            {
                "shares": as_data(make_shares(tmp_path / "single", WORKERS)),
                "least_steps": 6,
                "batch": 10,
            },
        ]
    )
    for worker, splits in enumerate(shares.shares):
        share = set().union(*(files[split.file] for split in splits))
        assert {record.encode() for record in by_file["records"][str(worker)]} == share
    first, second = (set(by_record["records"][str(worker)]) for worker in range(WORKERS))
    assert not first & second
    assert {record.encode() for record in first | second} == single
    # The slow worker ran fewer steps, and neither waited for the other nor ended.
    assert 0 < by_file["steps"]["0"] < by_file["steps"]["1"]
    expected = [by_file["steps"][str(worker)] + by_record["steps"][str(worker)] for worker in range(WORKERS)]
    assert sum(expected) % 50 == 0
    wait_until(lambda: cluster.steps() == expected, limit_s=10, what=f"{expected} steps reported")


@pytest.mark.timeout(240)
def test_a_worker_without_a_record_stops_the_training_by_name(cluster: Cluster, tmp_path: Path) -> None:
    """Its range begins inside the last record: bytes alone cannot tell that."""
    write_files(tmp_path, [1])
    (file,) = make_shares(tmp_path, 1).files
    cut = ([Split(file=0, start=0, end=10)], [Split(file=0, start=10, end=file.length)])
    shares = make_input_shares([file], cut, "worker", "repeat")
    (result,) = cluster.run_chief([{"shares": as_data(shares), "least_steps": 1, "batch": 1}])
    assert "worker:1 has no record to read: 1 file" in result["error"]
