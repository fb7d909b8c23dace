"""The Python door: light, quiet, with the errors and the rules of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import tfy
from tests.job_files import ENVIRON, FULL, SMALLEST, load_text, make_folder, refusals
from tests.views import make_report, make_view
from tfy import door
from tfy.errors import EXIT_COULD_NOT_START, SpecError
from tfy.load import load
from tfy.load_mapping import load_mapping, make_job_yaml
from tfy.states import ApplicationState, JobState


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_importing_tfy_loads_nothing_of_it() -> None:
    code = "import sys, tfy; print([name for name in sys.modules if name.startswith('tfy.')])"
    assert run_python(code) == "[]\n"


def test_finding_jobs_needs_neither_skein_nor_grpc() -> None:
    code = "import sys, tfy; tfy.find, tfy.Job; print({'skein', 'grpc', 'click', 'rich'} & {*sys.modules})"
    assert run_python(code) == "set()\n"


def test_every_public_name_is_there() -> None:
    for name in tfy.__all__:
        assert getattr(tfy, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'sumbit'"):
        tfy.sumbit  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("text", [SMALLEST, FULL])
def test_a_mapping_is_the_same_job_as_its_file(text: str, tmp_path: Path) -> None:
    spec = load_text(make_folder(tmp_path), text)
    mapping = yaml.safe_load(text)
    assert load_mapping(mapping, tmp_path, ENVIRON) == spec
    # What is kept of it in the job's directory is again the same job.
    (tmp_path / "job.yaml").write_bytes(make_job_yaml(mapping))
    assert load(tmp_path / "job.yaml", ENVIRON) == spec


@pytest.mark.parametrize(
    "text",
    [
        SMALLEST.replace("memory: 1", "memroy: 1"),
        SMALLEST.replace("name: digits", "name: [digits, 1.5]"),
        SMALLEST.replace("train.py", "gone.py") + "files: [lib/, lib/model.py, 3]\n",
        SMALLEST.replace("2 GiB", "4GB") + "timeouts: {total: null}\nenv: {A: true, B: 1.0}\n",
        SMALLEST.replace("{memory: 2 GiB}", "2"),
        SMALLEST.replace("{memory: 2 GiB}", "{memory: 2 GiB, instances: true}"),
    ],
)
def test_a_mapping_is_refused_as_its_file_without_lines(text: str, tmp_path: Path) -> None:
    of_file = sorted(line.partition(": ")[2] for line in refusals(make_folder(tmp_path), text))
    with pytest.raises(SpecError) as refused:
        load_mapping(yaml.safe_load(text), tmp_path, ENVIRON)
    lines = refused.value.message.splitlines()
    assert all(line.startswith("job: ") for line in lines)
    assert sorted(line.removeprefix("job: ") for line in lines) == of_file


def test_python_values_have_their_yaml_kind(tmp_path: Path) -> None:
    job = {**yaml.safe_load(SMALLEST), "program": Path("train.py"), "args": ("a", b"b", {1: 2})}
    with pytest.raises(SpecError) as refused:
        load_mapping(job, make_folder(tmp_path), {})
    assert refused.value.message.splitlines() == [
        "job: args[1]: b'b' is of a special type in YAML; a string is expected",
        "job: args[2]: a mapping stands here; a string is expected",
        "job: args[2].1: a key must be a text",
    ]
    job["args"] = ()
    assert load_mapping(job, tmp_path, {}).program == "train.py"
    assert json.loads(make_job_yaml(job))["program"] == "train.py"


def test_no_cluster_is_a_typed_error(tmp_path: Path) -> None:
    environ = {**os.environ, "HADOOP_CONF_DIR": str(tmp_path / "nowhere")}
    make_folder(tmp_path)
    for ask in (
        lambda: tfy.find("digits", environ=environ),
        lambda: tfy.jobs(environ=environ),
        lambda: tfy.submit(yaml.safe_load(SMALLEST), base_dir=tmp_path, environ=environ),
        lambda: tfy.Job("application_1_1", "u", "digits", environ).status(),
    ):
        with pytest.raises(tfy.UnreachableError, match="which is no folder"):
            ask()


@pytest.mark.parametrize(
    ("state", "final_status", "report", "exit_status"),
    [
        (ApplicationState.KILLED, "killed", None, 1),
        (ApplicationState.FINISHED, "failed", make_report(JobState.FAILED, cause="chief:0 failed"), 1),
        (
            ApplicationState.FINISHED,
            "failed",
            make_report(JobState.FAILED, cause="worker:1 missing", could_not_start=True),
            EXIT_COULD_NOT_START,
        ),
    ],
)
def test_a_failure_carries_the_cause_and_the_exit_status(
    state: ApplicationState, final_status: str, report: Any, exit_status: int
) -> None:
    view = make_view(state, final_status, "killed by ada", report)
    error = door._make_failure(view)
    assert error.exit_status == exit_status
    assert (view.cause or "-") in error.message
