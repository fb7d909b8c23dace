"""Counting the input's records on the real HDFS: what is opened again, and what is remembered where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.conftest import LocalHadoop
from tests.tfrecords import encode_records
from tests.waiting import wait_until
from tests.yarn.input_folder import InputFolder, make_folder
from tfy.errors import SpecError
from tfy.storage.hdfs import Storage
from tfy.yarn.inputs import FileSystems
from tfy.yarn.record_counts import choose_folders, count_inputs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def folder(cluster: LocalHadoop) -> Iterator[InputFolder]:
    with make_folder(cluster) as folder:
        yield folder


class Asked:
    """The file systems, and which files they were asked for."""

    def __init__(self, storage: Storage) -> None:
        self.systems = FileSystems(storage)
        self.uris: list[str] = []

    def of(self, uri: str) -> Storage:
        self.uris.append(uri)
        return self.systems.of(uri)


# --- offsets ------------------------------------------------------------------------------------------
def test_only_a_cut_inside_a_file_opens_it_again(folder: InputFolder) -> None:
    folder.write("a", data=encode_records([b"x" * 10] * 100))
    asked = Asked(folder.storage)
    counts, _ = count_inputs(asked.of, folder.look("a").files, folder.index(), folder.told.append)
    assert (counts.records, len(asked.uris)) == ((100,), 1)
    assert [counts.locate(0, number) for number in (0, 100, 101)] == [0, 2600, 2600]
    assert len(asked.uris) == 1
    # Where one share ends, the next begins.
    assert [counts.locate(0, number) for number in (40, 40, 80, 7)] == [1040, 1040, 2080, 182]
    assert len(asked.uris) == 4


def test_a_file_that_is_gone_when_it_is_cut_is_named(folder: InputFolder) -> None:
    folder.write("a")
    counts, _ = count_inputs(
        FileSystems(folder.storage).of, folder.look("a").files, folder.index(), folder.told.append
    )
    folder.storage.delete(f"{folder.root}/a")
    with pytest.raises(SpecError, match="/a has vanished since it was listed"):
        counts.locate(0, 2)


# --- memory -------------------------------------------------------------------------------------------
def test_one_file_remembers_a_folder(folder: InputFolder) -> None:
    folder.write("a", "b", "c", "day=1/a")
    assert folder.share("*", unequal="drop").shares.records == 16
    index = folder.index()
    assert len(folder.storage.list_folder(index.folder)) == 2
    assert sorted(index.fetch(folder.root)) == [f"{folder.root}/{name}" for name in "abc"]
    assert sorted(index.fetch(f"{folder.root}/day=1")) == [f"{folder.root}/day=1/a"]


def test_what_is_new_is_added_and_what_is_stale_replaced(folder: InputFolder) -> None:
    folder.write("a", "b", "c")
    folder.share("*", unequal="drop")
    folder.write("a", data=encode_records([b"x" * 10] * 5))
    folder.write("d", data=encode_records([b"x"]))
    # Of what nobody lists now, nothing is forgotten.
    assert folder.share("[abd]", unequal="drop").shares.records == 10
    known = folder.index().fetch(folder.root)
    assert [known[f"{folder.root}/{name}"].records for name in "abcd"] == [5, 4, 4, 1]


def test_nothing_is_written_where_nothing_is_new(folder: InputFolder) -> None:
    folder.write("a", "b")
    folder.share("*", unequal="drop")
    (before,) = folder.storage.list_folder(folder.index().folder)
    folder.share("*", unequal="drop")
    assert folder.storage.list_folder(before.uri) == [before]


def test_a_file_that_is_broken_does_not_lose_what_was_counted(folder: InputFolder) -> None:
    folder.write("a", "b")
    folder.write("c", data=encode_records([b"x" * 10] * 4)[:-3])
    with pytest.raises(SpecError, match="/c is broken"):
        folder.share("*", unequal="drop")
    assert f"{folder.root}/a" in folder.index().fetch(folder.root)


def test_a_long_count_remembers_as_it_goes(folder: InputFolder) -> None:
    folder.write("a", "b")
    index = replace(folder.index(), every_s=0.0)
    systems = FileSystems(folder.storage)

    def of(uri: str) -> Storage:
        if uri.endswith("/b"):
            wait_until(lambda: f"{folder.root}/a" in index.fetch(folder.root), limit_s=30, what="a")
        return systems.of(uri)

    counts, _ = count_inputs(of, folder.look("*").files, index, folder.told.append)
    assert counts.records == (4, 4)
    assert len(index.fetch(folder.root)) == 2


def test_what_could_not_be_written_is_written_later(folder: InputFolder) -> None:
    folder.write("a", "b")
    index = replace(folder.index(), every_s=0.0)
    systems = FileSystems(folder.storage)
    folder.storage.write(index.folder, b"a file where the folder should be")

    def of(uri: str) -> Storage:
        if uri.endswith("/b"):
            wait_until(
                lambda: any("not remembered" in text for text in folder.told),
                limit_s=30,
                what="that the memory could not be written is not said",
            )
            folder.storage.delete(index.folder)
        return systems.of(uri)

    count_inputs(of, folder.look("*").files, index, folder.told.append)
    assert sorted(index.fetch(folder.root)) == [f"{folder.root}/a", f"{folder.root}/b"]


def test_the_memory_of_a_folder_is_bounded(folder: InputFolder) -> None:
    index = replace(folder.index(), most_files=3)
    of = FileSystems(folder.storage).of
    for names in ("a", "b"), ("c", "d"):
        folder.write(*names)
        count_inputs(of, folder.look(f"[{''.join(names)}]").files, index, folder.told.append)
    known = index.fetch(folder.root)
    assert len(known) == 3
    assert {f"{folder.root}/c", f"{folder.root}/d"} < set(known)


def test_a_memory_that_cannot_be_read_is_said(folder: InputFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("a", "b")
    folder.share("*", unequal="drop")
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    stranger = InputFolder(Storage(folder.storage.default_fs, {}), folder.root)
    counts, _ = count_inputs(
        FileSystems(stranger.storage).of,
        folder.look("*").files,
        stranger.index(keeps=False),
        stranger.told.append,
    )
    assert counts.records == (4, 4)
    assert any("cannot be read" in text and "Permission denied" in text for text in stranger.told)


def test_of_very_many_folders_those_above_are_remembered() -> None:
    uris = [f"hdfs://nn/data/day={day}/hour={hour}/part-0" for day in range(3) for hour in range(4)]
    assert len(set(choose_folders(uris, most=12))) == 12
    assert set(choose_folders(uris, most=11)) == {f"hdfs://nn/data/day={day}" for day in range(3)}
    assert set(choose_folders(uris, most=2)) == {"hdfs://nn/data"}
