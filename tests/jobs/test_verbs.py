"""A day's verbs on real jobs: two of one name at once from one folder, and one through the Python door."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import tfy
from tests.conftest import LocalHadoop
from tests.jobs.running import JOB_LIMIT_S, START_LIMIT_S, list_applications, read_status, run_tfy
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

NAME = "twins"
PROGRAM = """
import pathlib, sys, time
print("here is a twin", flush=True)
until = time.monotonic() + 300
while time.monotonic() < until and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.1)
"""
TASKS = {"worker": {"memory": "1536 MiB"}}


@dataclass(frozen=True, slots=True)
class Twins:
    """Two jobs of one name that run until `go` exists."""

    first: str
    second: tfy.Job
    go: Path

    @property
    def ids(self) -> set[str]:
        """Their application ids."""
        return {self.first, self.second.application_id}


def list_jobs(cluster: LocalHadoop, *args: str) -> list[dict[str, Any]]:
    """`tfy ls --json` of the jobs of this test's names."""
    ended = run_tfy(cluster, "ls", "--json", *args)
    assert ended.code == 0, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    return [row for row in rows if row["name"] == NAME]


@pytest.fixture(scope="module")
def twins(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Submitted at the same moment from one folder, by the command and by the door; killed at the end."""
    folder = tmp_path_factory.mktemp("twins")
    (folder / "train.py").write_text(PROGRAM)
    go = folder / "go"
    job = {"name": NAME, "program": "train.py", "args": [str(go)], "strategy": "none", "tasks": TASKS}
    (folder / "job.yaml").write_text(json.dumps(job))
    told: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(run_tfy, cluster, "submit", str(folder / "job.yaml"), "--detach")
        second = tfy.submit(job, base_dir=folder, environ=cluster.environ, progress=told.append)
        submitted = other.result()
    assert submitted.code == 0, submitted.stderr
    assert told[-1] == "submitting"
    first = submitted.stdout.strip()
    try:
        yield Twins(first, second, go)
    finally:
        go.touch()
        for application_id in (first, second.application_id):
            run_tfy(cluster, "kill", application_id)


def test_the_door_leaves_no_process(twins: Twins) -> None:
    assert [process for process in list_own(psutil.Process()) if process.name() == "java"] == []


def list_own(process: psutil.Process) -> Iterator[psutil.Process]:
    """All below a process, but for the tests' own Hadoop and the containers that its NodeManagers started."""
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            if not any(word.startswith("-Dtfy.daemon=") for word in child.cmdline()):
                yield child
                yield from list_own(child)


def test_both_are_listed_and_a_name_is_not_enough(cluster: LocalHadoop, twins: Twins) -> None:
    wait_until(
        lambda: [row["state"] in ("starting", "running") for row in list_jobs(cluster)] == [True, True],
        limit_s=START_LIMIT_S,
        what="both drivers run",
    )
    rows = list_jobs(cluster)
    assert {row["application_id"] for row in rows} == twins.ids
    assert rows[0]["started"] >= rows[1]["started"]
    assert all(row["phase"] and row["duration_s"] > 0 for row in rows)
    # Two applications each, and one line each.
    shown = run_tfy(cluster, "ls").stdout.splitlines()
    assert len([line for line in shown if line.startswith(f"{NAME} ")]) == 2
    for verb in ("status", "kill", "wait"):
        refused = run_tfy(cluster, verb, NAME)
        assert (refused.code, refused.stdout) == (2, "")
        assert "2 jobs of the name twins are running" in refused.stderr
        assert all(application_id in refused.stderr for application_id in twins.ids)
    with pytest.raises(tfy.SpecError, match="are running"):
        tfy.find(NAME, environ=cluster.environ)
    assert len(list_jobs(cluster)) == 2


def test_every_id_of_a_job_names_it(cluster: LocalHadoop, twins: Twins) -> None:
    submission_id = twins.second.submission_id
    wait_until(
        lambda: len(list_applications(cluster, submission_id)) == 2, limit_s=START_LIMIT_S, what="Spark's"
    )
    skein, spark = list_applications(cluster, submission_id)
    assert skein["id"] == twins.second.application_id
    for target in (skein["id"], spark["id"], submission_id, submission_id[:8].upper()):
        assert read_status(cluster, target)["application_id"] == skein["id"], target
        assert tfy.find(target, environ=cluster.environ) == twins.second


def test_waiting_has_a_limit_and_then_the_jobs_end(cluster: LocalHadoop, twins: Twins) -> None:
    late = run_tfy(cluster, "wait", twins.first, "--timeout", "1s")
    assert (late.code, late.stdout) == (124, "")
    assert f"{twins.first} has not ended within 1 s; it goes on" in late.stderr
    with pytest.raises(tfy.WaitLimitError):
        twins.second.wait(timeout_s=0.5)
    assert not twins.second.status().state.final

    twins.go.touch()
    seen: list[tfy.JobView] = []
    view = twins.second.wait(timeout_s=JOB_LIMIT_S, check=True, show=seen.append)
    assert view.state is tfy.JobState.SUCCEEDED
    assert seen[-1] == view
    waited = run_tfy(cluster, "wait", twins.first, "--json")
    assert (waited.code, json.loads(waited.stdout)["state"]) == (0, "succeeded")
    line = run_tfy(cluster, "wait", twins.first).stdout
    assert line.startswith(f"{NAME} succeeded in ")
    assert line.count("\n") == 1

    lines = [line for line in twins.second.logs("worker:0") if line.line == "here is a twin"]
    assert [line.task for line in lines] == ["worker:0"]

    assert list_jobs(cluster) == []
    assert twins.ids <= {row["application_id"] for row in list_jobs(cluster, "--all")}
    newest = list_jobs(cluster, "--all")[0]["application_id"]
    assert read_status(cluster, NAME)["application_id"] == newest
    assert "has ended already: succeeded" in run_tfy(cluster, "kill", NAME).stderr


def test_a_job_that_the_door_kills_has_failed(cluster: LocalHadoop, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    job = tfy.submit(
        {"name": "doomed", "program": "train.py", "args": ["never"], "strategy": "none", "tasks": TASKS},
        base_dir=tmp_path,
        environ=cluster.environ,
    )
    assert job in tfy.jobs(environ=cluster.environ)
    pickle.loads(pickle.dumps(job)).kill()
    with pytest.raises(tfy.JobFailedError, match=r"doomed killed: .*killed by user") as failed:
        job.wait(timeout_s=60, check=True)
    assert failed.value.exit_status == 1
    assert job.wait(timeout_s=60).state is tfy.JobState.KILLED
    assert job not in tfy.jobs(environ=cluster.environ)
    assert job in tfy.jobs(ended=True, environ=cluster.environ)
    waited = run_tfy(cluster, "wait", "doomed")
    assert waited.code == 1
    assert waited.stdout.startswith("doomed killed ")
    job.kill()
