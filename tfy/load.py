"""job.yaml → JobSpec, with all of the file's errors at once, each with its line and key path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tfy import job_keys, yaml_marks
from tfy.errors import SpecError
from tfy.job_keys import JOB_KEYS
from tfy.job_values import (
    check_env_name,
    check_input_mode,
    check_local_file,
    check_local_path,
    check_name,
    check_python_env,
    check_queue,
    check_rdma,
    check_shard,
    check_storage_uri,
    check_strategy,
    check_unequal,
)
from tfy.read_tasks import read_tasks
from tfy.spec import (
    DEFAULT_STRATEGY,
    CheckpointSpec,
    ExportSpec,
    InputSpec,
    JobSpec,
    Strategy,
    TimeoutsSpec,
)
from tfy.units import format_duration, parse_duration_s
from tfy.yaml_fields import Fields, Problems
from tfy.yaml_marks import YamlProblem, parse_yaml


def load(path: Path, environ: Mapping[str, str]) -> JobSpec:
    """Read and check the job.yaml at `path`; `environ` gives the values of `${VAR}`.

    Raises one `SpecError` that has a line `job.yaml:7: key.path: …` for each thing that is wrong.
    """
    file, problems = str(path), Problems()
    text = _read_text(path)
    try:
        root, found = parse_yaml(text)
    except YamlProblem as error:
        raise SpecError(error.problem.render(file)) from error
    problems.extend(found)
    if not isinstance(root, yaml_marks.Mapping):
        line = root.line if root else 1
        raise SpecError(f"{file}:{line}: a job is a mapping of keys (name: …, program: …), which this is not")
    spec = read_tree(root, path.absolute(), environ, problems)
    problems.raise_all(file)
    return spec


def read_tree(
    root: yaml_marks.Mapping, source: Path, environ: Mapping[str, str], problems: Problems
) -> JobSpec:
    """The job that `root` describes, beside `source`; worth something only where `problems` stay none."""
    return _read_job(Fields(root, "", JOB_KEYS[""], environ, problems), source)


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SpecError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise SpecError(f"{path}: is a folder; give the path of a job.yaml") from error
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path}:{line}: not valid YAML: not UTF-8 text") from error


def _read_job(fields: Fields, source: Path) -> JobSpec:
    base_dir = source.parent
    fields.require("name", "name: digits")
    fields.require("program", "program: train.py")
    fields.text("python_env", check_python_env)
    strategy = fields.text("strategy", check_strategy)
    if strategy is None and "strategy" not in fields.names():
        strategy = DEFAULT_STRATEGY
    tasks, driver = read_tasks(fields, strategy)
    if "input" in fields.names() and tasks and not {"worker", "chief"} & {task.type for task in tasks}:
        fields.refuse("input", "no task reads it: workers share it, or else a chief reads all")
    checkpoint = _read_checkpoint(fields)
    if checkpoint is None and any(task.type == "evaluator" for task in tasks):
        fields.refuse(
            "tasks", "an evaluator reads checkpoints; say where they go: checkpoint: {dir: hdfs:///…}"
        )
    files = fields.texts("files", partial(check_local_path, base_dir=base_dir)) or ()
    _refuse_repeated(fields, "files", files)
    return JobSpec(
        source=source,
        base_dir=base_dir,
        name=fields.text("name", check_name) or "",
        program=fields.text("program", partial(check_local_file, base_dir=base_dir)) or "",
        args=fields.texts("args", str) or (),
        files=files,
        queue=fields.text("queue", check_queue) or job_keys.DEFAULT_QUEUE,
        strategy=strategy or DEFAULT_STRATEGY,
        tasks=tasks,
        driver=driver,
        # YAML takes a plain `off` for a boolean.
        rdma=fields.quantity("rdma", check_rdma, "off, preferred or required") or "off",
        input=_read_input(fields, strategy),
        checkpoint=checkpoint,
        export=_read_export(fields, checkpoint),
        timeouts=_read_timeouts(fields),
        env=_read_env(fields),
    )


def _read_input(fields: Fields, strategy: Strategy | None) -> InputSpec | None:
    section = fields.child("input", JOB_KEYS["input"])
    if section is None:
        return None
    section.text("mode", check_input_mode)
    section.require("paths", 'paths: ["hdfs:///data/digits/*.tfrecord"]')
    paths = section.texts("paths", check_storage_uri)
    if paths == ():
        section.refuse("paths", "the list is empty; name at least one file, folder or pattern")
    _refuse_repeated(section, "paths", paths or ())
    unequal = section.text("unequal", check_unequal)
    if strategy == "parameter_server" and unequal in ("drop", "refuse"):
        section.refuse(
            "unequal",
            f"{unequal!r} is not possible under parameter_server, where each worker reads at its own pace "
            "and a dataset that ends would end the training; accepted: repeat",
        )
    return InputSpec(
        mode="tensorflow",
        paths=paths or (),
        shard=section.text("shard", check_shard) or "auto",
        unequal=unequal or "repeat",
        seed=section.integer("seed", minimum=0) or job_keys.DEFAULT_SEED,
    )


def _read_checkpoint(fields: Fields) -> CheckpointSpec | None:
    section = fields.child("checkpoint", JOB_KEYS["checkpoint"])
    if section is None:
        return None
    directory, keep = _read_folder(section, 'dir: "hdfs:///models/digits"')
    return CheckpointSpec(dir=directory, keep=keep or job_keys.DEFAULT_CHECKPOINT_KEEP)


def _read_export(fields: Fields, checkpoint: CheckpointSpec | None) -> ExportSpec | None:
    section = fields.child("export", JOB_KEYS["export"])
    if section is None:
        return None
    directory, keep = _read_folder(section, 'dir: "hdfs:///serving/digits"')
    if checkpoint and directory and f"{directory}/".startswith(f"{checkpoint.dir}/"):
        section.refuse(
            "dir", f"{directory!r} lies in checkpoint.dir, which --fresh moves away; choose another"
        )
    return ExportSpec(dir=directory, keep=keep or job_keys.DEFAULT_EXPORT_KEEP)


def _read_folder(section: Fields, example: str) -> tuple[str, int | None]:
    """The folder `dir` on HDFS and how many of its kind to `keep`."""
    section.require("dir", example)
    keep = section.integer("keep", minimum=1)
    directory = section.text("dir", check_storage_uri)
    if directory is not None and any(character in directory for character in "*?[]{}"):
        section.refuse("dir", f"{directory!r} is a pattern; give one folder")
    return directory or "", keep


def _read_timeouts(fields: Fields) -> TimeoutsSpec:
    section = fields.child("timeouts", JOB_KEYS["timeouts"])
    given = {
        key: section.quantity(key, parse_duration_s, "a duration") if section else None
        for key in JOB_KEYS["timeouts"].known
    }
    total_s = given["total"] or job_keys.DEFAULT_TOTAL_TIMEOUT_S
    start_s = given["start"] or min(job_keys.DEFAULT_START_TIMEOUT_S, total_s)
    if section and start_s > total_s:
        section.refuse("start", f"{format_duration(start_s)} is longer than total")
    evaluate_s = given["evaluate"] or job_keys.DEFAULT_EVALUATE_TIMEOUT_S
    return TimeoutsSpec(start_s=start_s, total_s=total_s, evaluate_s=evaluate_s)


def _read_env(fields: Fields) -> tuple[tuple[str, str], ...]:
    section = fields.child("env", None)
    if section is None:
        return ()
    pairs = []
    for name in section.names():
        try:
            check_env_name(name)
        except SpecError as error:
            section.refuse(name, error.message)
        value = section.text(name, str)
        if value is not None:
            pairs.append((name, value))
    return tuple(pairs)


def _refuse_repeated(section: Fields, key: str, values: tuple[str, ...]) -> None:
    """Refuse a value that is there twice, and a path that lies inside another one of the list."""
    for index, value in enumerate(values):
        earlier = values[:index]
        if value in earlier:
            section.refuse(key, f"{value!r} is given twice")
        inside = [other for other in values if value.startswith(f"{other}/")]
        if inside:
            section.refuse(key, f"{value!r} is already inside {inside[0]!r}")
