"""Listing the input on the real HDFS: what counts, what does not and is said, what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import LocalHadoop
from tests.yarn.input_folder import RECORDS, InputFolder, make_folder
from tfy.errors import SpecError, UnreachableError
from tfy.plan_model import InputPlan
from tfy.storage.hdfs import Storage
from tfy.yarn.inputs import FileSystems, list_inputs, share_input

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def folder(cluster: LocalHadoop) -> Iterator[InputFolder]:
    with make_folder(cluster) as folder:
        yield folder


@pytest.fixture(scope="module")
def data(cluster: LocalHadoop) -> Iterator[InputFolder]:
    """As Hadoop's jobs leave their output. For reading only."""
    with make_folder(cluster) as folder:
        folder.write(
            "part-r-00003",
            "part-r-00001.tfrecord",
            "_SUCCESS",
            ".part-r-00003.crc",
            "part-r-00003.crc",
            "_temporary/0/part-r-00009",
            "day=1/part-r-00001",
            "day=1/_SUCCESS",
            "a b/part 1?",
        )
        folder.write("empty/part-r-00004", "empty/part-r-00005", data=b"")
        yield folder


# --- what is found ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ["a b/part 1?", "day=1/part-r-00001", "part-r-00001.tfrecord", "part-r-00003"]),
        ("", ["a b/part 1?", "day=1/part-r-00001", "part-r-00001.tfrecord", "part-r-00003"]),
        ("part-r-*", ["part-r-00001.tfrecord", "part-r-00003"]),
        ("part-r-00003", ["part-r-00003"]),
        ("part-r-0000?", ["part-r-00003"]),
        ("part-r-0000[1-3]*", ["part-r-00001.tfrecord", "part-r-00003"]),
        ("part-r-0000[^3]*", ["part-r-00001.tfrecord"]),
        ("{part-r-00003,day=*}", ["day=1/part-r-00001", "part-r-00003"]),
        (
            "{day=1/part,part}-r-00{001,003}*",
            ["day=1/part-r-00001", "part-r-00001.tfrecord", "part-r-00003"],
        ),
        ("day=1", ["day=1/part-r-00001"]),
        ("day=1/", ["day=1/part-r-00001"]),
        ("/day=1//*", ["day=1/part-r-00001"]),
        ("*/part*", ["a b/part 1?", "day=1/part-r-00001"]),
        ("*/*/part*", None),
        ("a b/*", ["a b/part 1?"]),
        ("a b/part 1?", ["a b/part 1?"]),
        ("_temporary/0/part-r-00009", ["_temporary/0/part-r-00009"]),
    ],
)
def test_data_files_are_found(data: InputFolder, pattern: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(SpecError, match="matches no data file"):
            data.names(pattern)
    else:
        assert data.names(pattern) == expected


def test_what_is_left_out_is_said(data: InputFolder) -> None:
    listing = data.look("*")
    assert listing.notes() == (
        "ignored 5 hidden files, as .part-r-00003.crc",
        "ignored 2 empty files, as part-r-00004",
    )
    shared = data.share("*")
    assert shared.pairs() == [
        ("input", "4 files, 416 bytes, 2 shares of 2 files"),
        ("", "ignored 5 hidden files, as .part-r-00003.crc"),
        ("", "ignored 2 empty files, as part-r-00004"),
    ]


def test_a_file_that_two_patterns_match_is_read_once(data: InputFolder) -> None:
    assert data.names("part-*", "*3", "part-r-00003") == ["part-r-00001.tfrecord", "part-r-00003"]


def test_a_name_that_is_no_pattern_is_taken_as_it_is(folder: InputFolder) -> None:
    folder.write("a{1}", "b[1", "c*d", "e\\f", "ü #%20")
    assert folder.names("a{1}", "b[1", "c*d", "ü #%20") == ["a{1}", "b[1", "c*d", "ü #%20"]
    assert folder.names("e\\\\f") == ["e\\f"]
    assert [file.length for file in folder.look("a{1}").files] == [len(RECORDS)]


def test_files_of_the_default_file_system_have_one_name(data: InputFolder) -> None:
    path = data.root.partition("://")[2].partition("/")[2]
    listing = list_inputs(
        FileSystems(data.storage), [f"hdfs:///{path}/part-*", f"{data.root}/part-*"], data.told.append
    )
    assert [file.uri for file in listing.files] == [
        f"{data.root}/part-r-00001.tfrecord",
        f"{data.root}/part-r-00003",
    ]


def test_another_authority_is_asked_by_its_name(data: InputFolder) -> None:
    """The same NameNode by another name is another file system here."""
    other = data.root.replace("127.0.0.1", "localhost")
    assert other != data.root
    listing = list_inputs(FileSystems(data.storage), [f"{other}/part-r-00003"], data.told.append)
    assert [file.uri for file in listing.files] == [f"{other}/part-r-00003"]


def test_viewfs_is_listed_by_its_own_names(data: InputFolder) -> None:
    settings = {
        "fs.defaultFS": "viewfs://c",
        "fs.viewfs.mounttable.c.link./seen": data.root,
        "fs.viewfs.mounttable.c.linkFallback": data.storage.default_fs,
        "dfs.client.failover.max.attempts": "2",
    }
    systems = FileSystems(Storage("viewfs://c", settings))
    for path in ("viewfs://c/seen/part-*", "viewfs:///seen/part-*", "viewfs://c/seen/part-r-0000{1,3}*"):
        listing = list_inputs(systems, [path], data.told.append)
        assert [file.uri for file in listing.files] == [
            "viewfs://c/seen/part-r-00001.tfrecord",
            "viewfs://c/seen/part-r-00003",
        ]
    with pytest.raises(SpecError, match="does not say which file system"):
        list_inputs(systems, ["hdfs:///seen"], data.told.append)


def test_many_directories_and_files(folder: InputFolder) -> None:
    folder.write(*(f"d{number % 7}/e/f{number}" for number in range(40)))
    assert len(folder.look("*").files) == 40


# --- nothing ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "ignored"),
    [
        ("*.none", ""),
        ("none/*", ""),
        ("none", ""),
        ("_*", "ignored 2 hidden files, as _SUCCESS"),
        ("_SUCCESS", "ignored 1 hidden file, as _SUCCESS"),
        (".*", "ignored 1 hidden file, as .part-r-00003.crc"),
        ("*.crc", "ignored 2 hidden files, as .part-r-00003.crc"),
        ("_temporary/_*", ""),
        ("*/0/part-*", "ignored 1 hidden file, as part-r-00009"),
        ("empty", "ignored 2 empty files, as part-r-00004"),
    ],
)
def test_a_pattern_that_matches_no_data_is_named(data: InputFolder, pattern: str, ignored: str) -> None:
    with pytest.raises(SpecError) as raised:
        data.look("part-*", pattern)
    assert f"{data.root}/{pattern}'" in raised.value.message
    assert raised.value.message.endswith(f"({ignored})" if ignored else "matches no data file")


def test_a_pattern_that_is_none_is_explained(folder: InputFolder) -> None:
    with pytest.raises(SpecError, match=r"\[x' is no pattern of Hadoop's.*Unclosed"):
        folder.look("[x")


def test_a_namenode_that_is_not_there_is_no_empty_folder() -> None:
    storage = Storage("hdfs://127.0.0.1:9", {"dfs.client.failover.max.attempts": "1"})
    for path in ("hdfs:///data/*", "hdfs:///data"):
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9/data"):
            list_inputs(FileSystems(storage), [path], lambda _: None)


# --- unreadable ---------------------------------------------------------------------------------------
@pytest.fixture
def as_stranger(
    folder: InputFolder, cluster: LocalHadoop, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], InputFolder]:
    def make() -> InputFolder:
        monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
        return InputFolder(Storage(cluster.uri, {}), folder.root)

    assert os.environ.get("HADOOP_USER_NAME") != "stranger"
    return make


@pytest.mark.parametrize("unequal", ["repeat", "drop"])
@pytest.mark.parametrize("tasks", [2, 5])
def test_a_file_that_may_not_be_read_is_refused_by_name(
    folder: InputFolder, as_stranger: Callable[[], InputFolder], unequal: str, tasks: int
) -> None:
    folder.write("part-0", "part-2")
    folder.write("part-1", mode=0o000)
    stranger = as_stranger()
    with pytest.raises(SpecError, match=r"/part-1 cannot be read: .*Permission denied: user=stranger"):
        share_input(
            stranger.storage,
            InputPlan(
                paths=(f"{folder.root}/part-*",), shard="auto", unequal=unequal, seed=0, task_type="worker"
            ),
            tasks,
            stranger.index(keeps=False),
            stranger.told.append,
        )


@pytest.mark.parametrize("pattern", ["closed", "closed/*", "*", "closed/part-0"])
def test_a_directory_that_may_not_be_listed_is_refused_by_name(
    folder: InputFolder, as_stranger: Callable[[], InputFolder], pattern: str
) -> None:
    folder.storage.make_folder(f"{folder.root}/closed", mode=0o700)
    folder.write("closed/part-0", "part-1")
    with pytest.raises(SpecError, match=r"cannot be listed: .*Permission denied: user=stranger.*/closed"):
        as_stranger().look(pattern)


def test_a_hidden_directory_is_not_looked_into(
    folder: InputFolder, as_stranger: Callable[[], InputFolder]
) -> None:
    folder.storage.make_folder(f"{folder.root}/_private", mode=0o700)
    folder.write("_private/part-0", "part-1")
    assert as_stranger().names("") == ["part-1"]
