"""job.yaml: what is accepted, and files that are no job at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.job_files import FULL, SMALLEST, load_text, make_folder, refusals
from tfy.errors import SpecError
from tfy.job_keys import JOB_KEYS
from tfy.load import load
from tfy.spec import (
    CheckpointSpec,
    ContainerSpec,
    ExportSpec,
    InputSpec,
    JobSpec,
    Strategy,
    TaskSpec,
    TimeoutsSpec,
)
from tfy.task_keys import MINIMUM_MEMORY, STRATEGY_TASKS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder without its job.yaml."""
    return make_folder(tmp_path)


def test_every_key(folder: Path) -> None:
    spec = load_text(folder, FULL)
    assert spec == JobSpec(
        source=folder / "job.yaml",
        base_dir=folder,
        name="digits",
        program="train.py",
        args=("--epochs", "3", "--user=ada", "a$b", "cost: 5$"),
        files=("train.py", "lib"),
        queue="root.ml",
        strategy="parameter_server",
        tasks=(
            TaskSpec(type="chief", instances=1, container=ContainerSpec(memory_mib=4096, vcores=3)),
            TaskSpec(
                type="worker",
                instances=4,
                container=ContainerSpec(memory_mib=3072, vcores=3, gpus=2, node_label="gpu"),
            ),
            TaskSpec(type="ps", instances=2, container=ContainerSpec(memory_mib=1024, vcores=2)),
            TaskSpec(
                type="evaluator", instances=1, container=ContainerSpec(memory_mib=2048, vcores=1, gpus=1)
            ),
        ),
        driver=ContainerSpec(memory_mib=1536, vcores=2),
        rdma="preferred",
        input=InputSpec(
            mode="tensorflow",
            paths=("hdfs:///data/train/*.tfrecord", "viewfs://cluster/data/more"),
            shard="record",
            unequal="repeat",
            seed=7,
        ),
        checkpoint=CheckpointSpec(dir="hdfs://ns1/models/ada", keep=5),
        export=ExportSpec(dir="hdfs://ns1/serving/ada", keep=2),
        timeouts=TimeoutsSpec(start_s=120, total_s=21600, evaluate_s=60),
        env=(("A", "1"), ("B", "ada")),
    )


def test_defaults(folder: Path) -> None:
    spec = load_text(folder, SMALLEST)
    assert (spec.args, spec.files, spec.env) == ((), (), ())
    assert (spec.queue, spec.strategy) == ("default", "parameter_server")
    assert (spec.input, spec.checkpoint, spec.export, spec.rdma) == (None, None, None, "off")
    assert spec.timeouts == TimeoutsSpec(start_s=600, total_s=86400, evaluate_s=600)
    assert spec.driver == ContainerSpec(memory_mib=1024, vcores=1)
    chief, worker, ps = spec.tasks
    assert chief.container == worker.container == ContainerSpec(memory_mib=2048, vcores=1)
    assert (chief.instances, worker.instances, ps.instances) == (1, 1, 1)


@pytest.mark.parametrize("written", ["off", '"off"', "'off'", '"${RDMA}"'])
def test_rdma_is_off_however_it_is_written(folder: Path, written: str) -> None:
    (folder / "job.yaml").write_text(f"{SMALLEST}rdma: {written}\n", encoding="utf-8")
    assert load(folder / "job.yaml", {"RDMA": "off"}).rdma == "off"


def test_a_short_total_shortens_the_usual_start(folder: Path) -> None:
    spec = load_text(folder, SMALLEST + "timeouts: {total: 5 min}\n")
    assert spec.timeouts == TimeoutsSpec(start_s=300, total_s=300, evaluate_s=600)


def test_anchors_are_read_like_the_value_they_stand_for(folder: Path) -> None:
    spec = load_text(
        folder, SMALLEST.replace("{memory: 1 GiB}", "&size {memory: 2 GiB}") + "  chief: *size\n"
    )
    assert spec.tasks[0].container.memory_mib == 2048


def test_a_misspelt_key_in_full(folder: Path) -> None:
    text = SMALLEST.replace("  worker: {memory: 2 GiB}", "  worker:\n    instances: 2\n    memroy: 2 GiB")
    assert refusals(folder, text) == [
        'job.yaml:7: tasks.worker.memroy: unknown key; did you mean "memory"? '
        "known keys: instances, memory, vcores, gpus, node_label"
    ]


def test_all_errors_at_once_in_the_order_of_the_file(folder: Path) -> None:
    text = "nmae: x\nprogram: gone.py\ntasks:\n  ps: {memory: 4GB}\n  worker: {instances: 0}\ncolour: red\n"
    lines = refusals(folder, text)
    assert [line.split(": ")[0] + " " + line.split(": ")[1] for line in lines] == [
        "job.yaml:1 nmae",
        "job.yaml:2 program",
        "job.yaml:4 tasks.ps.memory",
        "job.yaml:5 tasks.worker.instances",
        "job.yaml:5 tasks.worker.memory",
        "job.yaml:6 colour",
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "job.yaml:1: a job is a mapping of keys"),
        (b"# nothing\n", "job.yaml:1: a job is a mapping of keys"),
        (b"\n- a\n", "job.yaml:2: a job is a mapping of keys"),
        (b"just words", "job.yaml:1: a job is a mapping of keys"),
        (b"a: 1\n---\nb: 2\n", "job.yaml:2: not valid YAML: expected a single document"),
        (b"a: 1\nb: \xff\n", "job.yaml:2: not valid YAML: not UTF-8 text"),
        (b"a: &x [*x]\n", "job.yaml:1: a"),
    ],
)
def test_a_file_that_is_no_job(folder: Path, data: bytes, expected: str) -> None:
    (folder / "job.yaml").write_bytes(data)
    with pytest.raises(SpecError, match=re.escape(expected)):
        load(folder / "job.yaml", {})


def test_a_file_that_cannot_be_read(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: no such file$"):
        load(folder / "nowhere.yaml", {})
    with pytest.raises(SpecError, match=r"is a folder; give the path of a job\.yaml$"):
        load(folder, {})


def test_a_missing_tasks_section_is_one_error(folder: Path) -> None:
    lines = refusals(folder, "name: digits\nprogram: train.py\n")
    assert len(lines) == 1
    assert lines[0].startswith("job.yaml:1: tasks: missing; give for example tasks: {ps: {memory: 1 GiB}")


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "job.yaml").write_text(SMALLEST, encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    spec = load(Path(folder.name) / "job.yaml", {})
    assert spec.base_dir == folder
    assert (spec.base_dir / spec.program).is_file()


def test_key_tables_agree() -> None:
    assert set(MINIMUM_MEMORY) == set(JOB_KEYS["tasks"].known)
    for path, keys in JOB_KEYS.items():
        assert not set(keys.known) & set(keys.later), path
        parent, _, key = path.rpartition(".")
        assert not path or key in JOB_KEYS[parent].known


WORKER = "  worker: {instances: 3, memory: 2 GiB}\n"


def strategy_text(strategy: str, tasks: str) -> str:
    return f"name: a\nprogram: train.py\nstrategy: {strategy}\ntasks:\n{tasks}"


@pytest.mark.parametrize(
    ("strategy", "tasks", "expected"),
    [
        ("parameter_server", "  ps: {memory: 1 GiB}\n" + WORKER, ["chief 1", "worker 3", "ps 1"]),
        ("multi_worker_mirrored", WORKER, ["worker 3"]),
        ("none", WORKER, ["worker 3"]),
        ("none", "  chief: {memory: 1 GiB}\n", ["chief 1"]),
        ("none", "  ps: {memory: 1 GiB}\n" + WORKER, ["worker 3", "ps 1"]),
        ("none", "  chief: {}\n" + WORKER, ["chief 1", "worker 3"]),
    ],
)
def test_the_tasks_of_each_strategy(
    folder: Path, strategy: Strategy, tasks: str, expected: list[str]
) -> None:
    spec = load_text(folder, strategy_text(strategy, tasks))
    assert [f"{task.type} {task.instances}" for task in spec.tasks] == expected
    with_evaluator = strategy_text(strategy, tasks + "  evaluator: {memory: 1 GiB}\n")
    spec = load_text(folder, with_evaluator + 'checkpoint: {dir: "hdfs:///m"}\n')
    assert [task.type for task in spec.tasks][-1] == "evaluator"


@pytest.mark.parametrize(
    ("strategy", "tasks", "expected"),
    [
        (
            "multi_worker_mirrored",
            "  chief: {memory: 2 GiB}\n" + WORKER,
            "job.yaml:5: tasks.chief: not accepted: under multi_worker_mirrored worker:0 leads",
        ),
        (
            "multi_worker_mirrored",
            WORKER + "  ps: {memory: 1 GiB}\n",
            "job.yaml:6: tasks.ps: not accepted: multi_worker_mirrored has no parameter servers",
        ),
        ("multi_worker_mirrored", "  driver: {}\n", "job.yaml:5: tasks.worker: missing; give for example"),
        (
            "none",
            "  driver: {memory: 1 GiB}\n",
            "job.yaml:4: tasks: no task runs the program; give at least one of chief, worker, ps",
        ),
        ("none", "  chief: {vcores: 1}\n", "job.yaml:5: tasks.chief.memory: missing; give for example"),
        (
            "none",
            "  evaluator: {memory: 1 GiB}\n" + WORKER,
            "job.yaml:4: tasks: an evaluator reads checkpoints; say where they go",
        ),
    ],
)
def test_tasks_that_a_strategy_does_not_have(folder: Path, strategy: str, tasks: str, expected: str) -> None:
    (line,) = refusals(folder, strategy_text(strategy, tasks))
    assert line.startswith(expected)


def test_an_export_folder_survives_a_fresh_start(folder: Path) -> None:
    text = SMALLEST + 'checkpoint: {dir: "hdfs:///m"}\nexport: {dir: "hdfs:///m/export"}\n'
    (line,) = refusals(folder, text)
    assert line.startswith("job.yaml:7: export.dir: 'hdfs:///m/export' lies in checkpoint.dir, which --fresh")


def test_every_strategy_has_its_rule() -> None:
    for rules in STRATEGY_TASKS.values():
        refused = {task_type for task_type, _ in rules.refused}
        assert {*rules.required, *rules.possible} | refused == {"chief", "worker", "ps"}


def test_an_input_needs_who_reads_it(folder: Path) -> None:
    text = strategy_text("none", "  ps: {memory: 1 GiB}\n") + 'input: {paths: ["hdfs:///d"]}\n'
    (line,) = refusals(folder, text)
    assert line == "job.yaml:6: input: no task reads it: workers share it, or else a chief reads all"


def test_a_notebook_is_no_program(folder: Path) -> None:
    (folder / "nb.ipynb").write_text("{}")
    (line,) = refusals(folder, SMALLEST.replace("train.py", "nb.ipynb"))
    assert "job.yaml:2: program: 'nb.ipynb' is a notebook; give a Python file" in line
