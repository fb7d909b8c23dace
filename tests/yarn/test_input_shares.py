"""What is shared out of files on the real HDFS: looked into, split, counted and remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.conftest import LocalHadoop
from tests.tfrecords import compress, encode_records
from tests.yarn.input_folder import RECORDS, InputFolder, make_folder
from tfy.errors import SpecError, UnreachableError
from tfy.plan_model import InputPlan
from tfy.shares import Split
from tfy.storage.hdfs import FileInfo
from tfy.yarn.inputs import places_to_look_at, share_input

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def folder(cluster: LocalHadoop) -> Iterator[InputFolder]:
    with make_folder(cluster) as folder:
        yield folder


# --- shares -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tasks", [1, 2])
def test_whole_files_are_looked_at(folder: InputFolder, tasks: int) -> None:
    folder.write("a", "c")
    folder.write("b", data=b"whatever")
    with pytest.raises(SpecError, match=r"^input: .*/b is not a TFRecord file") as raised:
        folder.share("*", tasks=tasks)
    assert raised.value.hint is not None
    assert "input.paths" in raised.value.hint
    folder.write("b", data=compress(RECORDS, "gzip"))
    assert [len(splits) for splits in folder.share("*", tasks=3).shares.shares] == [1, 1, 1]


@pytest.mark.parametrize(
    ("lengths", "ranges", "expected"),
    [
        ([5] * 1000, False, set(range(1000))),
        ([5] * 1200 + [6] + [5] * 10, False, {*range(997), 1200, 1210}),
        ([5, *range(100_000, 0, -1), 5], False, {0, *range(1, 999), 100_001}),
        ([5] * 1001, True, set(range(1001))),
    ],
)
def test_of_very_many_whole_files_the_ends_and_the_largest_are_looked_at(
    lengths: list[int], ranges: bool, expected: set[int]
) -> None:
    files = [
        FileInfo(uri=f"hdfs://nn/{number}", length=length, is_folder=False, modified_ms=0)
        for number, length in enumerate(lengths)
    ]
    assert set(places_to_look_at(files, ranges=ranges)) == expected


@pytest.mark.parametrize("unequal", ["repeat", "drop"])
def test_what_is_split_must_be_tfrecord_files(folder: InputFolder, unequal: str) -> None:
    folder.write("a")
    folder.write("b.csv", data=b"image,label\n1,2\n3,4\n5,6")
    with pytest.raises(SpecError, match=r"/b\.csv is not a TFRecord file: it begins with 69 6d"):
        folder.share("*", tasks=3, unequal=unequal)


@pytest.mark.parametrize("unequal", ["repeat", "drop"])
def test_compressed_files_stay_whole_whatever_their_name(folder: InputFolder, unequal: str) -> None:
    folder.write("a", data=RECORDS)
    folder.write("b", data=compress(RECORDS, "gzip"))
    shares = folder.share("*", tasks=3, unequal=unequal).shares
    assert [split for splits in shares.shares for split in splits if split.file == 1] == [
        Split(file=1, start=0, end=shares.files[1].length, records=4 if unequal == "drop" else None)
    ]
    with pytest.raises(SpecError, match="1 compressed file cannot be shared by 2 tasks"):
        folder.share("b", unequal=unequal)


@pytest.mark.parametrize("unequal", ["drop", "refuse"])
def test_counted_shares_are_cut_between_records(folder: InputFolder, unequal: str) -> None:
    folder.write("a", data=encode_records([b"x" * (number % 50) for number in range(5001)]))
    shares = folder.share("a", tasks=4, unequal=unequal).shares
    assert shares.records_of_tasks() == (1251, 1250, 1250, 1250)
    data = folder.storage.read(f"{folder.root}/a")
    first, second = shares.shares[0][0], shares.shares[1][0]
    assert first.end == second.start == len(encode_records([b"x" * (number % 50) for number in range(1251)]))
    assert second.end < len(data)


# --- remembered counts ----------------------------------------------------------------------------------
def test_a_file_is_counted_once_until_it_changes(
    folder: InputFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a", "b")
    assert folder.share("*", unequal="drop").shares.records == 8
    # What is remembered is believed: a wrong number there is what comes out.
    index = folder.index()
    (file,) = folder.look("a").files
    known = index.fetch(folder.root)
    known[file.uri] = replace(known[file.uri], records=1000)
    index.keep(folder.root, known.values())
    assert folder.share("*", unequal="drop").shares.records == 1004
    folder.write("a", data=encode_records([b"x" * 10] * 5))
    assert folder.share("*", unequal="drop").shares.records == 9
    assert folder.share("*", unequal="refuse").shares.records == 9
    info = folder.storage.stat(f"{folder.root}-index")
    assert info.is_folder
    assert len(folder.storage.list_folder(info.uri)) == 1


def test_a_torn_memory_is_counted_again(folder: InputFolder) -> None:
    folder.write("a", "b")
    folder.share("*", unequal="drop")
    for remembered in folder.storage.list_folder(f"{folder.root}-index"):
        folder.storage.write(remembered.uri, b"{")
    assert folder.share("*", unequal="drop").shares.records == 8


def test_a_dry_run_writes_nothing(folder: InputFolder) -> None:
    folder.write("a", "b")
    plan = InputPlan(paths=(folder.root,), shard="auto", unequal="drop", seed=0, task_type="worker")
    shared = share_input(folder.storage, plan, 2, folder.index(keeps=False), folder.told.append)
    assert shared.shares.records == 8
    with pytest.raises(UnreachableError, match="no such file"):
        folder.storage.stat(f"{folder.root}-index")
