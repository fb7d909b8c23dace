"""The main job, end to end, as `make demo` runs it: one job for all tests of this file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.conftest import LocalHadoop
from tests.jobs.running import Ended, list_applications, open_hdfs, read_status, run_tfy
from tfy.yarn.credentials import make_credentials

pytestmark = pytest.mark.cluster

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@dataclass(frozen=True)
class DigitsJob:
    """The job as its user saw it, and as YARN and HDFS remember it."""

    ended: Ended
    application_id: str
    status: dict[str, Any]
    home: Path

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The final table of tasks, by name."""
        return {record["task"]: record for record in self.status["report"]["tasks"]}


@pytest.fixture(scope="module")
def digits(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> DigitsJob:
    """Prepared and run from a home whose Skein certificate ended yesterday."""
    home = tmp_path_factory.mktemp("home")
    write_expired_certificate(home / ".skein")
    environ = {**cluster.environ, "HADOOP_CONF_DIR": str(cluster.conf_dir)}
    subprocess.run(
        [sys.executable, str(DIGITS / "prepare.py")],
        env=environ,
        check=True,
        timeout=180,
        capture_output=True,
    )
    # The checkpoint of an earlier run would be restored: this one is to learn by itself.
    open_hdfs(cluster).delete("/models/digits", recursive=True)
    ended = run_tfy(
        cluster, "submit", str(DIGITS / "job.yaml"), "--follow", environ={**environ, "HOME": str(home)}
    )
    assert ended.code == 0, ended.stderr
    application_id = ended.stdout.splitlines()[0]
    return DigitsJob(ended, application_id, read_status(cluster, application_id), home)


def write_expired_certificate(folder: Path) -> None:
    """What Skein finds in the home folder of someone who began a year ago: it ended yesterday."""
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    # Credentials last 30 days longer than the job's limit.
    expired = make_credentials(yesterday - timedelta(days=30), limit_s=0)
    certificate = x509.load_pem_x509_certificate(expired.certificate)
    assert certificate.not_valid_after_utc < datetime.now(timezone.utc)
    folder.mkdir()
    (folder / "skein.crt").write_bytes(expired.certificate)
    (folder / "skein.pem").write_bytes(expired.key)


def test_the_last_lines_tell_what_it_brought(digits: DigitsJob) -> None:
    figures = {
        line.split()[0]: line.split(maxsplit=1)[1].strip()
        for line in digits.ended.stdout.splitlines()
        if len(line.split()) > 1
    }
    assert float(figures["test_accuracy"]) >= 0.95
    assert figures["checkpoint"].startswith("hdfs://")
    assert figures["digits"].startswith("succeeded in ")
    assert "read" in figures["worker:0"] and "read" in figures["worker:1"]


def test_the_application_id_is_the_first_line(digits: DigitsJob) -> None:
    assert digits.application_id.startswith("application_")
    assert digits.ended.stdout.startswith(f"{digits.application_id}\n")


def test_the_checkpoint_is_on_hdfs(digits: DigitsJob, cluster: LocalHadoop) -> None:
    checkpoint = digits.tasks["chief:0"]["progress"]["checkpoint"]
    assert checkpoint.startswith("hdfs:///models/digits/")
    files = open_hdfs(cluster).glob_status(f"{checkpoint.removeprefix('hdfs://')}*")
    assert any(status.path.endswith(".index") for status in files)


def test_each_worker_read_and_computed_itself(digits: DigitsJob) -> None:
    for name in ("worker:0", "worker:1"):
        progress = digits.tasks[name]["progress"]
        assert progress["bytes_read"] > 0
        assert progress["reads"] > 0
        assert progress["steps"] > 0
    steps = sum(digits.tasks[name]["progress"]["steps"] for name in ("worker:0", "worker:1"))
    assert steps == digits.tasks["chief:0"]["progress"]["steps"]


def test_tasks_ran_on_both_hosts(digits: DigitsJob) -> None:
    assert {record["host"] for record in digits.tasks.values()} == {"127.0.0.2", "127.0.0.3"}
    assert {record["state"] for record in digits.tasks.values()} == {"succeeded", "stopped"}
    assert set(digits.tasks) == {"chief:0", "worker:0", "worker:1", "ps:0"}


def test_yarn_has_two_applications_of_one_job(digits: DigitsJob, cluster: LocalHadoop) -> None:
    applications = list_applications(cluster, digits.status["submission_id"])
    assert [app["applicationType"] for app in applications] == ["skein", "SPARK"]
    assert {app["state"] for app in applications} == {"FINISHED"}
    assert applications[0]["finalStatus"] == "SUCCEEDED"
    assert applications[0]["diagnostics"] == "digits: succeeded"


def test_the_jobs_directory_holds_its_history(digits: DigitsJob, cluster: LocalHadoop) -> None:
    root = digits.status["job_dir"].removeprefix(cluster.uri)
    hdfs = open_hdfs(cluster)

    def read(name: str) -> bytes:
        with hdfs.read(f"{root}/{name}") as reader:
            return bytes(reader.read())

    assert read("application_id").decode() == digits.application_id
    assert read("job.yaml") == (DIGITS / "job.yaml").read_bytes()
    assert json.loads(read("plan.json"))["name"] == "digits"
    assert json.loads(read("result.json"))["state"] == "succeeded"
    assert hdfs.get_file_info(root).permission == 0o700
    assert hdfs.get_file_info(f"{root}/files/tfy.zip").permission == 0o600
    with pytest.raises(FileNotFoundError):
        hdfs.get_file_info(f"{root}/private")


def test_status_finds_the_job_by_its_name(digits: DigitsJob, cluster: LocalHadoop) -> None:
    ended = run_tfy(cluster, "status", "digits")
    assert ended.code == 0, ended.stderr
    assert digits.application_id in ended.stdout
    assert "succeeded" in ended.stdout


def test_killing_what_has_ended_is_no_error(digits: DigitsJob, cluster: LocalHadoop) -> None:
    ended = run_tfy(cluster, "kill", digits.application_id)
    assert ended.code == 0
    assert "has ended already" in ended.stderr


def test_dry_run_sends_nothing(digits: DigitsJob, cluster: LocalHadoop) -> None:
    before = list_job_folders(cluster)
    ended = run_tfy(cluster, "submit", str(DIGITS / "job.yaml"), "--dry-run", "--json")
    assert ended.code == 0, ended.stderr
    assert json.loads(ended.stdout)["name"] == "digits"
    assert list_job_folders(cluster) == before


def list_job_folders(cluster: LocalHadoop) -> list[str]:
    return sorted(status.path for status in open_hdfs(cluster).glob_status("/user/*/.tfy/*"))


@pytest.mark.parametrize("with_yarn", [True, False], ids=["yarn on PATH", "no yarn on PATH"])
def test_a_given_configuration_is_used_with_or_without_yarn(
    digits: DigitsJob, cluster: LocalHadoop, tmp_path: Path, with_yarn: bool
) -> None:
    """Another cluster's folder, in no place that tfy knows."""
    conf_dir = tmp_path / "conf"
    shutil.copytree(cluster.conf_dir, conf_dir)
    path = "/usr/bin:/bin"
    if with_yarn:
        jars = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages/pyspark/jars"
        (tmp_path / "yarn").write_text(f'#!/bin/sh\necho "$HADOOP_CONF_DIR:{jars}/*"\n')
        (tmp_path / "yarn").chmod(0o755)
        path = f"{tmp_path}:{path}"
    environ = {
        **{name: value for name, value in cluster.environ.items() if not name.startswith("TFY_")},
        "HADOOP_CONF_DIR": str(conf_dir),
        "PATH": path,
    }
    ended = run_tfy(cluster, "status", digits.application_id, "--json", environ=environ)
    assert ended.code == 0, ended.stderr
    assert json.loads(ended.stdout)["state"] == "succeeded"
