"""job.yaml: what is accepted, and files that are no job at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.job_files import FULL, SMALLEST, load_text, make_folder, refusals
from tfy.errors import SpecError
from tfy.job_keys import JOB_KEYS, MINIMUM_MEMORY
from tfy.load import load
from tfy.spec import CheckpointSpec, ContainerSpec, InputSpec, JobSpec, TaskSpec, TimeoutsSpec


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
            TaskSpec(type="worker", instances=4, container=ContainerSpec(memory_mib=3072, vcores=3)),
            TaskSpec(type="ps", instances=2, container=ContainerSpec(memory_mib=1024, vcores=2)),
        ),
        driver=ContainerSpec(memory_mib=1536, vcores=2),
        input=InputSpec(
            mode="tensorflow", paths=("hdfs:///data/train/*.tfrecord", "viewfs://cluster/data/more")
        ),
        checkpoint=CheckpointSpec(dir="hdfs://ns1/models/ada", keep=5),
        timeouts=TimeoutsSpec(start_s=120, total_s=21600),
        env=(("A", "1"), ("B", "ada")),
    )


def test_defaults(folder: Path) -> None:
    spec = load_text(folder, SMALLEST)
    assert (spec.args, spec.files, spec.env) == ((), (), ())
    assert (spec.queue, spec.strategy) == ("default", "parameter_server")
    assert (spec.input, spec.checkpoint) == (None, None)
    assert spec.timeouts == TimeoutsSpec(start_s=600, total_s=86400)
    assert spec.driver == ContainerSpec(memory_mib=1024, vcores=1)
    chief, worker, ps = spec.tasks
    assert chief.container == worker.container == ContainerSpec(memory_mib=2048, vcores=1)
    assert (chief.instances, worker.instances, ps.instances) == (1, 1, 1)


def test_a_short_total_shortens_the_usual_start(folder: Path) -> None:
    spec = load_text(folder, SMALLEST + "timeouts: {total: 5 min}\n")
    assert spec.timeouts == TimeoutsSpec(start_s=300, total_s=300)


def test_anchors_are_read_like_the_value_they_stand_for(folder: Path) -> None:
    spec = load_text(
        folder, SMALLEST.replace("{memory: 1 GiB}", "&size {memory: 2 GiB}") + "  chief: *size\n"
    )
    assert spec.tasks[0].container.memory_mib == 2048


def test_a_misspelt_key_in_full(folder: Path) -> None:
    text = SMALLEST.replace("  worker: {memory: 2 GiB}", "  worker:\n    instances: 2\n    memroy: 2 GiB")
    assert refusals(folder, text) == [
        'job.yaml:7: tasks.worker.memroy: unknown key; did you mean "memory"? '
        "known keys: instances, memory, vcores"
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
