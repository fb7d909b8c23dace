"""What a person reads of a plan, and what a program reads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.job_files import FULL, load_text, make_folder
from tfy.cli import render
from tfy.plan import SiteFacts, make_plan
from tfy.plan_model import Plan
from tfy.records import Progress, TaskRecord
from tfy.states import TaskState


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A plan for a cluster that rounds up to whole GiB."""
    site = SiteFacts(
        default_fs="hdfs://namenode:8020",
        user="ada",
        python="/opt/python/bin/python",
        minimum_allocation_mib=1024,
        maximum_allocation_mib=8192,
        maximum_vcores=4,
    )
    return make_plan(load_text(make_folder(tmp_path), FULL), site, "0b5c")


def test_a_plan_for_a_person(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    render.show_plan(plan, as_json=False)
    shown = capsys.readouterr()
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert shown.err == ""
    assert lines[:3] == [
        "job digits",
        "program train.py --epochs 3 --user=ada 'a$b' 'cost: 5$'",
        "strategy parameter_server",
    ]
    assert "directory hdfs://namenode:8020/user/ada/.tfy/0b5c" in lines
    assert "input path hdfs:///data/train/*.tfrecord" in lines
    assert "checkpoint hdfs://ns1/models/ada (the newest 5 are kept)" in lines
    assert "timeouts start 2 min, total 6 h" in lines
    assert "export hdfs://ns1/serving/ada (the newest 2 are kept)" in lines
    assert "rdma preferred" in lines
    table = lines.index("container count memory allocated vcores gpus label")
    assert lines[table + 1 : table + 8] == [
        "chief 1 4 GiB 4 GiB 3",
        "worker 4 3 GiB 3 GiB 3 2 gpu",
        "ps 2 1 GiB 1 GiB 2",
        "evaluator 1 2 GiB 2 GiB 1 1",
        "driver 1 1536 MiB 2 GiB 2",
        "spark am 1 768 MiB 1 GiB 1",
        "total 10 22784 MiB 23 GiB 23 9",
    ]


def test_a_plan_for_a_program(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    render.show_plan(plan, as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out, type=Plan) == plan


def test_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    record = TaskRecord(
        task="worker:1",
        state=TaskState.FAILED,
        host="node-2",
        started=100.0,
        ended=190.0,
        exit_code=1,
        error="[bold]KeyError[/bold]: ':smile:'\nsecond line",
        progress=Progress(steps=7),
    )
    render.make_console().print(render.make_tasks_table([record]))
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["task", "state", "host", "container", "time", "steps", "exit", "error"]
    assert " ".join(row.split()) == "worker:1 failed node-2 1 min 30 s 7 1 [bold]KeyError[/bold]: ':smile:'"


def test_without_a_terminal_there_is_no_live_line(capsys: pytest.CaptureFixture[str]) -> None:
    with render.LiveLine() as live:
        live.update("step 3")
        render.narrate("worker:0 running")
        assert not live.redraws
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "worker:0 running\n")
