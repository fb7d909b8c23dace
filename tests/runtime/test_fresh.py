"""A fresh start puts the old checkpoint folder aside, on the real HDFS."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from tests.conftest import Hdfs
from tests.plans import make_small_plan
from tfy.errors import UnreachableError
from tfy.runtime.fresh import move_aside
from tfy.storage.hadoop_conf import read_properties
from tfy.storage.hdfs import NotFoundError, Storage

pytestmark = pytest.mark.cluster


@pytest.fixture
def storage(hdfs: Hdfs) -> Storage:
    return Storage(hdfs.uri, read_properties(hdfs.conf_dir))


def test_what_was_there_is_beside_it_afterwards(storage: Storage) -> None:
    folder = f"hdfs:///tmp/fresh-{uuid.uuid4()}"
    storage.write(f"{folder}/checkpoint", b"old")
    plan = replace(make_small_plan(), checkpoint_dir=folder, fresh=True)
    aside = move_aside(plan, storage)
    assert aside == f"{storage.default_fs}{folder.removeprefix('hdfs://')}-before-{plan.submission_id[:8]}"
    assert storage.read(f"{aside}/checkpoint") == b"old"
    with pytest.raises(NotFoundError):
        storage.stat(folder)
    # Nothing there is a fresh start as well.
    assert move_aside(plan, storage) is None
    # Never over what is there already: the job must not start then.
    storage.write(f"{folder}/checkpoint", b"new")
    with pytest.raises(UnreachableError):
        move_aside(plan, storage)
    assert storage.read(f"{folder}/checkpoint") == b"new"


def test_without_a_word_nothing_is_moved(storage: Storage) -> None:
    folder = f"hdfs:///tmp/kept-{uuid.uuid4()}"
    storage.write(f"{folder}/checkpoint", b"old")
    assert move_aside(replace(make_small_plan(), checkpoint_dir=folder), storage) is None
    assert storage.read(f"{folder}/checkpoint") == b"old"
    assert move_aside(replace(make_small_plan(), checkpoint_dir=None, fresh=True), storage) is None
