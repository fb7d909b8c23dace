"""Where a job will write, on the real HDFS; YARN is played."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.conftest import Hdfs
from tests.plans import make_small_plan
from tests.views import make_view
from tfy.contract import to_json
from tfy.errors import SpecError
from tfy.paths import JobDir
from tfy.plan_model import Plan
from tfy.storage.hadoop_conf import read_properties
from tfy.storage.hdfs import NotFoundError, Storage
from tfy.yarn.application import Application, Wanted
from tfy.yarn.outputs import check_rivals, check_writable

pytestmark = pytest.mark.cluster


@pytest.fixture
def storage(hdfs: Hdfs) -> Storage:
    return Storage(hdfs.uri, read_properties(hdfs.conf_dir))


@pytest.fixture
def folder(storage: Storage) -> Iterator[str]:
    """A folder of the test's own, which nobody else may write to."""
    uri = f"hdfs:///tmp/outputs-{uuid.uuid4()}"
    storage.make_folder(uri, mode=0o755)
    yield uri
    storage.delete(uri)
    storage.delete(f"{storage.default_fs}/user/rival")


def make_plan(folder: str, **changes: object) -> Plan:
    plan = replace(make_small_plan(), checkpoint_dir=f"{folder}/model", export_dir=f"{folder}/serving")
    return replace(plan, **changes)  # type: ignore[arg-type]


def test_folders_are_made_and_nothing_else_is_left(storage: Storage, folder: str) -> None:
    check_writable(make_plan(folder), storage)
    assert storage.list_folder(f"{folder}/model") == storage.list_folder(f"{folder}/serving") == []


@pytest.mark.parametrize("field", ["checkpoint.dir", "export.dir"])
def test_a_folder_of_somebody_elses_is_refused(
    storage: Storage, folder: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    bobs = Storage(storage.default_fs, storage._properties)
    kept = {"checkpoint.dir": "export_dir", "export.dir": "checkpoint_dir"}[field]
    with pytest.raises(SpecError, match=f"{field}: bob may not write to .*Permission denied"):
        check_writable(make_plan(folder, user="bob", **{kept: None}), bobs)
    with pytest.raises(NotFoundError):
        storage.stat(storage.resolve(f"{folder}/model"))


@dataclass(frozen=True)
class PlayedYarn:
    """One job runs."""

    running: Application

    def report(self, application_id: str) -> Application | None:
        raise NotImplementedError

    def list_applications(self, wanted: Wanted) -> tuple[Application, ...]:
        assert not wanted.ended
        return (self.running,)


def run_rival(storage: Storage, folder: str, checkpoint_dir: str | None) -> PlayedYarn:
    """A running job, whose plan lies where its user's jobs do."""
    submission_id = str(uuid.uuid4())
    running = replace(make_view().application, user="rival", tags=("tfy", f"tfy:{submission_id}"))
    plan = make_plan(folder, checkpoint_dir=checkpoint_dir)
    storage.write(JobDir.of(storage.default_fs, "rival", submission_id).plan, to_json(plan))
    return PlayedYarn(running)


def test_a_running_job_with_the_same_folder_is_named(storage: Storage, folder: str) -> None:
    told: list[str] = []
    yarn = run_rival(storage, folder, f"{storage.default_fs}{folder.removeprefix('hdfs://')}/model/")
    check_rivals(make_plan(folder), yarn, storage, told.append)
    (line,) = told
    assert line.startswith(f"warning: {folder}/model is checkpoint.dir of digits (application_1_1), too")
    with pytest.raises(SpecError, match=r"--fresh would move .*/model away from a job that runs: digits"):
        check_rivals(make_plan(folder, fresh=True), yarn, storage, told.append)


@pytest.mark.parametrize("other", ["hdfs:///tmp/elsewhere", None])
def test_jobs_with_other_folders_are_no_rivals(storage: Storage, folder: str, other: str | None) -> None:
    told: list[str] = []
    check_rivals(make_plan(folder, fresh=True), run_rival(storage, folder, other), storage, told.append)
    assert told == []
