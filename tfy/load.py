"""job.yaml → JobSpec, with all of the file's errors at once, each with its line and key path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tfy import job_keys, yaml_marks
from tfy.errors import SpecError
from tfy.job_keys import JOB_KEYS, MINIMUM_MEMORY
from tfy.job_values import (
    check_env_name,
    check_input_mode,
    check_local_file,
    check_local_path,
    check_name,
    check_python_env,
    check_queue,
    check_storage_uri,
    check_strategy,
)
from tfy.spec import (
    DEFAULT_STRATEGY,
    CheckpointSpec,
    ContainerSpec,
    InputSpec,
    JobSpec,
    TaskSpec,
    TaskType,
    TimeoutsSpec,
)
from tfy.units import format_duration, format_memory, parse_duration_s, parse_memory_mib
from tfy.yaml_fields import Fields, Problems
from tfy.yaml_marks import YamlProblem, parse_yaml

# What stands for a value that was refused while the rest of the file is read: never used, since then
# there is a problem to raise.
_REFUSED_MEMORY_MIB = 0


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
    fields = Fields(root, "", JOB_KEYS[""], environ, problems)
    spec = _read_job(fields, path.absolute())
    problems.raise_all(file)
    return spec


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
    tasks, driver = _read_tasks(fields)
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
        strategy=fields.text("strategy", check_strategy) or DEFAULT_STRATEGY,
        tasks=tasks,
        driver=driver,
        input=_read_input(fields),
        checkpoint=_read_checkpoint(fields),
        timeouts=_read_timeouts(fields),
        env=_read_env(fields),
    )


def _read_tasks(fields: Fields) -> tuple[tuple[TaskSpec, ...], ContainerSpec]:
    nothing = ContainerSpec(memory_mib=_REFUSED_MEMORY_MIB, vcores=job_keys.DEFAULT_VCORES)
    usual_driver = ContainerSpec(
        memory_mib=job_keys.DEFAULT_DRIVER_MEMORY_MIB, vcores=job_keys.DEFAULT_VCORES
    )
    fields.require("tasks", "tasks: {ps: {memory: 1 GiB}, worker: {instances: 2, memory: 2 GiB}}")
    tasks = fields.child("tasks", JOB_KEYS["tasks"])
    if tasks is None:
        return (), nothing
    tasks.require("ps", "ps: {memory: 1 GiB}")
    tasks.require("worker", "worker: {instances: 2, memory: 2 GiB}")
    worker = _read_task(tasks, "worker", nothing)
    ps = _read_task(tasks, "ps", nothing)
    chief = _read_container(tasks.child("chief", JOB_KEYS["tasks.chief"]), "chief", worker.container)
    driver = _read_container(tasks.child("driver", JOB_KEYS["tasks.driver"]), "driver", usual_driver)
    return (TaskSpec(type="chief", instances=1, container=chief), worker, ps), driver


def _read_task(tasks: Fields, task_type: TaskType, default: ContainerSpec) -> TaskSpec:
    """A task type with instances of its own, which has to say how much memory each needs."""
    task = tasks.child(task_type, JOB_KEYS[f"tasks.{task_type}"])
    instances = None
    if task is not None:
        task.require("memory", "memory: 2 GiB")
        instances = task.integer("instances", minimum=1)
    return TaskSpec(
        type=task_type,
        instances=instances or job_keys.DEFAULT_INSTANCES,
        container=_read_container(task, task_type, default),
    )


def _read_container(task: Fields | None, name: str, default: ContainerSpec) -> ContainerSpec:
    if task is None:
        return default
    memory_mib = task.quantity("memory", parse_memory_mib, "a memory size")
    minimum = MINIMUM_MEMORY[name]
    if memory_mib is not None and memory_mib < minimum.mib:
        accepted = f"{minimum.mib} MiB or more ({minimum.reason})"
        task.refuse("memory", f"{format_memory(memory_mib)} is too little; accepted: {accepted}")
    vcores = task.integer("vcores", minimum=1)
    return ContainerSpec(memory_mib=memory_mib or default.memory_mib, vcores=vcores or default.vcores)


def _read_input(fields: Fields) -> InputSpec | None:
    section = fields.child("input", JOB_KEYS["input"])
    if section is None:
        return None
    section.text("mode", check_input_mode)
    section.require("paths", 'paths: ["hdfs:///data/digits/*.tfrecord"]')
    paths = section.texts("paths", check_storage_uri)
    if paths == ():
        section.refuse("paths", "the list is empty; name at least one file, folder or pattern")
    _refuse_repeated(section, "paths", paths or ())
    return InputSpec(mode="tensorflow", paths=paths or ())


def _read_checkpoint(fields: Fields) -> CheckpointSpec | None:
    section = fields.child("checkpoint", JOB_KEYS["checkpoint"])
    if section is None:
        return None
    section.require("dir", 'dir: "hdfs:///models/digits"')
    keep = section.integer("keep", minimum=1)
    directory = section.text("dir", check_storage_uri)
    if directory is not None and any(character in directory for character in "*?[]{}"):
        section.refuse("dir", f"{directory!r} is a pattern; give one folder")
    return CheckpointSpec(dir=directory or "", keep=keep or job_keys.DEFAULT_CHECKPOINT_KEEP)


def _read_timeouts(fields: Fields) -> TimeoutsSpec:
    section = fields.child("timeouts", JOB_KEYS["timeouts"])
    if section is None:
        return TimeoutsSpec(
            start_s=job_keys.DEFAULT_START_TIMEOUT_S, total_s=job_keys.DEFAULT_TOTAL_TIMEOUT_S
        )
    start_s = section.quantity("start", parse_duration_s, "a duration")
    total_s = section.quantity("total", parse_duration_s, "a duration") or job_keys.DEFAULT_TOTAL_TIMEOUT_S
    if start_s is not None and start_s > total_s:
        section.refuse("start", f"{format_duration(start_s)} is longer than total")
    usual_start_s = min(job_keys.DEFAULT_START_TIMEOUT_S, total_s)
    return TimeoutsSpec(start_s=start_s or usual_start_s, total_s=total_s)


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
