"""Plan → Skein's words: tested by the text that is sent."""

from __future__ import annotations

import subprocess

from tests.plans import make_small_plan
from tfy.yarn.convert import make_application_spec, make_script


def test_the_driver_alone_judges() -> None:
    spec = make_application_spec(make_small_plan(workers=3, ps=2)).to_dict()
    assert set(spec["services"]) == {"chief", "ps"}
    assert spec["max_attempts"] == 1
    for service in spec["services"].values():
        assert service["instances"] == 0
        assert service["allow_failures"] is True
        assert service["max_restarts"] == 0
        assert not service["depends"]


def test_sizes_queue_and_identity() -> None:
    plan = make_small_plan()
    spec = make_application_spec(plan)
    assert (spec.name, spec.queue) == ("small", "default")
    assert spec.tags == {"tfy", f"tfy:{plan.submission_id}"}
    assert spec.master.resources.memory == 1024
    assert spec.services["ps"].resources.vcores == 1


def test_every_container_gets_what_was_staged_and_no_secret() -> None:
    plan = make_small_plan()
    spec = make_application_spec(plan)
    for files in (spec.master.files, spec.services["chief"].files, spec.services["ps"].files):
        assert {name: str(file.type).lower() for name, file in files.items()} == {
            "tfy_code": "archive",
            "program": "archive",
            "hadoop_conf": "archive",
            "plan.json": "file",
        }
        assert all(file.source.startswith(f"{plan.job_dir}/files/") for file in files.values())
    assert "PRIVATE KEY" not in str(spec.to_dict())


def test_the_shell_becomes_the_process_and_odd_paths_are_quoted() -> None:
    script = make_script(make_small_plan(python="/opt/my env/python"), "node")
    assert script.splitlines()[-1] == "exec '/opt/my env/python' -m tfy.runtime node"
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
