"""Staging: what the containers need, packed here and put into the job's directory on HDFS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import tfy
from tfy import contract
from tfy.errors import SpecError, StartError
from tfy.paths import JobDir
from tfy.plan_model import Plan
from tfy.shares import InputShares
from tfy.spec import JobSpec
from tfy.storage.archives import pack, walk_files
from tfy.storage.hdfs import Storage
from tfy.yarn.credentials import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where what is staged comes from; `job_yaml` is the job as it was submitted."""

    spec: JobSpec
    job_yaml: bytes
    conf_dir: Path
    credentials: Credentials
    shares: InputShares | None = None
    """Who reads what of the input; None where the job has none."""


def stage_job(storage: Storage, plan: Plan, sources: Sources, narrate: Callable[[str], None]) -> None:
    """Makes the job's directory (private to its user) and puts everything into it."""
    job_dir = JobDir(plan.job_dir)
    for folder in (job_dir.root, job_dir.files, job_dir.private):
        storage.make_folder(folder)
    storage.write(job_dir.job_yaml, sources.job_yaml)
    storage.write(job_dir.plan, contract.to_json(plan))
    storage.write(job_dir.secret(contract.SECRET_CERTIFICATE), sources.credentials.certificate)
    storage.write(job_dir.secret(contract.SECRET_KEY), sources.credentials.key)
    with tempfile.TemporaryDirectory(prefix="tfy-stage-") as scratch:
        for staged in plan.staged:
            local = Path(scratch) / staged.name
            _make(local, staged.local_name, plan, sources)
            narrate(f"staging {staged.name} ({local.stat().st_size:,} bytes)")
            storage.upload(local, job_dir.file(staged.name))


def _make(local: Path, local_name: str, plan: Plan, sources: Sources) -> None:
    """One staged file, by the name that it gets in a container."""
    if local_name == contract.LOCAL_PLAN:
        local.write_bytes(contract.to_json(plan))
    elif local_name == contract.LOCAL_CODE:
        pack(local, list_code())
    elif local_name == contract.LOCAL_PROGRAM:
        try:
            pack(local, list_program(sources.spec))
        except OSError as error:
            raise SpecError(f"{sources.spec.source}: files: {error}") from error
    elif local_name == contract.LOCAL_INPUT:
        local.write_bytes(contract.to_json(sources.shares))
    elif local_name == contract.LOCAL_HADOOP_CONF:
        pack(local, [(path, path.name) for path in sorted(sources.conf_dir.glob("*.xml"))])


def list_code() -> list[tuple[Path, str]]:
    """tfy itself as it runs here, the HDFS plugin included: the cluster needs no tfy of its own."""
    package = Path(str(files(tfy)))
    found = [(path, f"{package.name}/{path.relative_to(package)}") for path in walk_files(package)]
    if not any(path.suffix == ".so" for path, _ in found):
        raise StartError(
            f"the HDFS plugin is missing in {package / 'runtime'}",
            hint="build it with `make venv`, or `pip install` tfy again where cargo is installed",
        )
    return found


def list_program(spec: JobSpec) -> list[tuple[Path, str]]:
    """The program and the files beside it, by their path relative to job.yaml."""
    found: dict[str, Path] = {}
    for name in (spec.program, *spec.files):
        path = spec.base_dir / name
        for file in walk_files(path) if path.is_dir() else [path]:
            found[str(file.relative_to(spec.base_dir))] = file
    return [(path, name) for name, path in found.items()]
