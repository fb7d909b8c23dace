"""Files and directories on hdfs://, on a real NameNode and DataNode, as a program meets them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.hdfs_files import read, run_python, write

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


# --- files ------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 3 * 1024 * 1024 + 17])
def test_what_is_written_is_read(tf: Any, folder: str, size: int) -> None:
    data = os.urandom(size)
    path = write(tf, f"{folder}/file", data)
    assert read(tf, path) == data
    assert tf.io.gfile.stat(path).length == size
    assert tf.io.read_file(path).numpy() == data


def test_small_appends_and_large_ones_come_out_in_order(tf: Any, folder: str) -> None:
    pieces = [os.urandom(size) for size in (10, 2 << 20, 5, 1 << 20, (1 << 20) - 1, 1)]
    with tf.io.gfile.GFile(f"{folder}/file", "wb") as file:
        for piece in pieces:
            file.write(piece)
        assert file.tell() == sum(map(len, pieces))
    assert read(tf, f"{folder}/file") == b"".join(pieces)


def test_reading_jumps_about(tf: Any, folder: str) -> None:
    data = os.urandom(6 << 20)
    path = write(tf, f"{folder}/file", data)
    with tf.io.gfile.GFile(path, "rb") as file:
        for offset, size in [(5 << 20, 100), (0, 1 << 20), (1 << 20, 1 << 20), (17, 3 << 20), (0, 10)]:
            file.seek(offset)
            assert file.read(size) == data[offset : offset + size]
        file.seek((6 << 20) - 3)
        assert file.read(100) == data[-3:]
        assert file.read(100) == b""


@pytest.mark.parametrize("name", ["with space", "grüße-日本", "100%25", "a#b", "what?", "a+b=c&d"])
def test_names_are_taken_as_they_are(tf: Any, folder: str, name: str) -> None:
    path = write(tf, f"{folder}/{name}", name.encode())
    assert tf.io.gfile.listdir(folder) == [name]
    assert read(tf, path) == name.encode()
    tf.io.gfile.rename(path, f"{folder}/{name}.new")
    assert tf.io.gfile.glob(f"{folder}/*") == [f"{folder}/{name}.new"]
    tf.io.gfile.remove(f"{folder}/{name}.new")
    assert tf.io.gfile.listdir(folder) == []


def test_appending_continues_a_file_or_begins_one(tf: Any, folder: str) -> None:
    path = write(tf, f"{folder}/file", b"one,", "ab")
    write(tf, path, b"two,", "ab")
    with tf.io.gfile.GFile(path, "ab") as file:
        file.write(b"three")
        assert file.tell() == len(b"one,two,three")
    assert read(tf, path) == b"one,two,three"


def test_writing_again_replaces_a_file(tf: Any, folder: str) -> None:
    path = write(tf, f"{folder}/file", b"a longer text")
    write(tf, path, b"short")
    assert read(tf, path) == b"short"


def test_closing_a_small_file_does_not_wait_half_a_second(tf: Any, folder: str) -> None:
    times = []
    for index in range(7):
        start = time.monotonic()
        write(tf, f"{folder}/{index}")
        times.append(time.monotonic() - start)
    assert sorted(times)[3] < 0.4, times


def test_a_file_that_is_open_at_the_end_of_the_program_is_complete(tf: Any, folder: str) -> None:
    run_python(f"file = tf.io.gfile.GFile('{folder}/open', 'w')\nfile.write('all of it')")
    assert read(tf, f"{folder}/open") == b"all of it"


# --- directories ------------------------------------------------------------------------------
def test_directories_are_made_listed_and_deleted(tf: Any, folder: str) -> None:
    gfile = tf.io.gfile
    gfile.makedirs(f"{folder}/a/b")
    gfile.makedirs(f"{folder}/a/b")
    gfile.mkdir(f"{folder}/a/c")
    write(tf, f"{folder}/a/file", b"12345")
    assert sorted(gfile.listdir(f"{folder}/a")) == ["b", "c", "file"]
    assert gfile.isdir(f"{folder}/a") and not gfile.isdir(f"{folder}/a/file")
    assert gfile.exists(f"{folder}/a/file") and not gfile.exists(f"{folder}/a/none")
    stat = gfile.stat(f"{folder}/a/file")
    assert (stat.length, stat.is_directory) == (5, False)
    assert abs(stat.mtime_nsec / 1e9 - time.time()) < 60
    assert [top for top, _, _ in gfile.walk(f"{folder}/a")] == [
        f"{folder}/a",
        f"{folder}/a/b",
        f"{folder}/a/c",
    ]
    gfile.rmtree(f"{folder}/a")
    assert not gfile.exists(f"{folder}/a")


def test_a_directory_is_not_deleted_as_a_file_nor_while_it_is_full(tf: Any, folder: str) -> None:
    tf.io.gfile.makedirs(f"{folder}/full")
    write(tf, f"{folder}/full/file")
    with pytest.raises(tf.errors.FailedPreconditionError, match="full: is a directory"):
        tf.io.gfile.remove(f"{folder}/full")
    assert read(tf, f"{folder}/full/file") == b"data"


def test_paths_are_made_simple(tf: Any, folder: str) -> None:
    write(tf, f"{folder}//a/../file")
    assert read(tf, f"{folder}/./file") == b"data"


# --- renaming and copying ---------------------------------------------------------------------
def test_renaming_replaces_only_where_that_is_asked_for(tf: Any, folder: str) -> None:
    old, new = write(tf, f"{folder}/old", b"old"), write(tf, f"{folder}/new", b"new")
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.io.gfile.rename(new, old)
    tf.io.gfile.rename(new, old, overwrite=True)
    assert read(tf, old) == b"new"
    assert tf.io.gfile.listdir(folder) == ["old"]
    tf.io.gfile.rename(old, old, overwrite=True)
    assert read(tf, old) == b"new"


def test_directories_are_renamed_with_what_is_in_them(tf: Any, folder: str) -> None:
    tf.io.gfile.makedirs(f"{folder}/a")
    write(tf, f"{folder}/a/file")
    tf.io.gfile.rename(f"{folder}/a", f"{folder}/b")
    assert read(tf, f"{folder}/b/file") == b"data"


def test_copies_go_within_hdfs_and_to_and_from_local_files(tf: Any, folder: str, tmp_path: Path) -> None:
    data = os.urandom(5 << 20)
    path = write(tf, f"{folder}/file", data)
    tf.io.gfile.copy(path, f"{folder}/copy")
    tf.io.gfile.copy(f"{folder}/copy", str(tmp_path / "local"))
    tf.io.gfile.copy(str(tmp_path / "local"), f"{folder}/back")
    assert read(tf, f"{folder}/back") == read(tf, f"{folder}/copy") == data
    write(tf, f"{folder}/kept", b"kept")
    with pytest.raises(tf.errors.NotFoundError, match=r"/missing: "):
        tf.io.gfile.copy(f"{folder}/missing", f"{folder}/kept", overwrite=True)
    assert read(tf, f"{folder}/kept") == b"kept"


# --- patterns ---------------------------------------------------------------------------------
def test_patterns_match_as_they_do_on_local_files(tf: Any, folder: str, tmp_path: Path) -> None:
    for name in ["a/x1.rec", "a/x2.rec", "a/x10.rec", "a/y.txt", "b/x1.rec", "b/deep/x1.rec", "c*d/x1.rec"]:
        for root in (folder, str(tmp_path)):
            tf.io.gfile.makedirs(f"{root}/{name.rpartition('/')[0]}")
            write(tf, f"{root}/{name}")
    patterns = ["a/*", "*/x?.rec", "*/*.rec", "a/x[1]*.rec", "a/[^x]*", "?/deep/*", "*", "a/x1.rec"]
    for pattern in [*patterns, "c\\*d/*", "none/*", "a/none*", "*/none", "a/x1.rec/*"]:
        local = sorted(tf.io.gfile.glob(f"{tmp_path}/{pattern}"))
        expected = [path.replace(str(tmp_path), folder, 1) for path in local]
        assert tf.io.gfile.glob(f"{folder}/{pattern}") == expected, pattern
