"""Input files on the real HDFS, in a directory of one test's own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import LocalHadoop
from tests.tfrecords import encode_records
from tfy.plan_model import InputPlan
from tfy.storage.hdfs import Storage
from tfy.yarn.inputs import FileSystems, Listing, SharedInput, list_inputs, share_input
from tfy.yarn.record_counts import IndexFolder
from tfy.yarn.side_by_side import side_by_side

RECORDS = encode_records([b"x" * 10] * 4)  # 104 bytes


class InputFolder:
    """A directory on HDFS of one test's own."""

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = root
        self.told: list[str] = []

    def write(self, *names: str, data: bytes = RECORDS, mode: int = 0o644) -> None:
        # HDFS takes half a second to close a file.
        side_by_side(
            lambda name: self.storage.write(f"{self.root}/{name}", data, mode=mode), names, threads=8
        )

    def look(self, *patterns: str) -> Listing:
        paths = [f"{self.root}/{pattern}" for pattern in patterns]
        return list_inputs(FileSystems(self.storage), paths, self.told.append)

    def names(self, *patterns: str) -> list[str]:
        """What is found, relative to the folder."""
        return [file.uri.removeprefix(f"{self.root}/") for file in self.look(*patterns).files]

    def share(
        self, *patterns: str, tasks: int = 2, shard: str = "auto", unequal: str = "repeat"
    ) -> SharedInput:
        plan = InputPlan(
            paths=tuple(f"{self.root}/{pattern}" for pattern in patterns),
            shard=shard,
            unequal=unequal,
            seed=0,
            task_type="worker",
        )
        return share_input(self.storage, plan, tasks, self.index(), self.told.append)

    def index(self, *, keeps: bool = True) -> IndexFolder:
        return IndexFolder(storage=self.storage, folder=f"{self.root}-index", keeps=keeps)


@contextmanager
def make_folder(cluster: LocalHadoop) -> Iterator[InputFolder]:
    """An empty one, removed at the end with what was remembered of it."""
    storage = Storage(cluster.uri, {})
    folder = InputFolder(storage, f"{cluster.uri}/tmp/test_inputs/{time.time_ns()}")
    storage.make_folder(folder.root, mode=0o755)
    yield folder
    storage.delete(folder.root)
    storage.delete(f"{folder.root}-index")
