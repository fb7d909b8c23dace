"""hdfs:// inside TensorFlow, on a real NameNode and DataNode, as a program meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Hdfs
from tfy.runtime.filesystem import read_counters, register

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

# Port 1 refuses connections.
UNREACHABLE = "hdfs://127.0.0.1:1"


@pytest.fixture(scope="module")
def tf() -> Any:
    import tensorflow

    register()
    return tensorflow


@pytest.fixture
def folder(tf: Any, hdfs: Hdfs, request: pytest.FixtureRequest) -> str:
    """An empty directory of the test's own."""
    path = f"{hdfs.uri}/tmp/test_filesystem/{request.node.originalname}-{time.time_ns()}"
    tf.io.gfile.makedirs(path)
    return path


def write(tf: Any, path: str, data: bytes = b"data", mode: str = "wb") -> str:
    with tf.io.gfile.GFile(path, mode) as file:
        file.write(data)
    return path


def read(tf: Any, path: str) -> bytes:
    with tf.io.gfile.GFile(path, "rb") as file:
        return bytes(file.read())


def run_python(code: str, **environ: str) -> str:
    """The output of a process that has the plugin registered."""
    program = "import tensorflow as tf\nfrom tfy.runtime.filesystem import *\nregister()\n" + textwrap.dedent(
        code
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


# --- directories --------------------------------------------------------------------------------
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


# --- renaming and copying -----------------------------------------------------------------------
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


# --- patterns -----------------------------------------------------------------------------------
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


# --- errors -------------------------------------------------------------------------------------
def test_errors_name_the_path_and_say_what_is_wrong(tf: Any, folder: str) -> None:
    tf.io.gfile.makedirs(f"{folder}/directory")
    write(tf, f"{folder}/file")
    for error, path, action in [
        (tf.errors.NotFoundError, f"{folder}/none", lambda path: read(tf, path)),
        (tf.errors.NotFoundError, f"{folder}/none", tf.io.gfile.stat),
        (tf.errors.NotFoundError, f"{folder}/none", tf.io.gfile.remove),
        (tf.errors.NotFoundError, f"{folder}/none", tf.io.gfile.rmtree),
        (tf.errors.NotFoundError, f"{folder}/none/x", lambda path: write(tf, path)),
        (tf.errors.NotFoundError, f"{folder}/none", lambda path: list(tf.data.TFRecordDataset(path))),
        (tf.errors.FailedPreconditionError, f"{folder}/directory", tf.io.read_file),
    ]:
        with pytest.raises(error) as caught:
            action(path)
        assert path in str(caught.value)
        assert "\tat " not in str(caught.value), "a Java stack trace"


@pytest.mark.parametrize(
    "action",
    [
        lambda tf, root: tf.io.gfile.glob(f"{root}/*"),
        lambda tf, root: tf.io.gfile.exists(f"{root}/x"),
        lambda tf, root: tf.io.read_file(f"{root}/x"),
        lambda tf, root: write(tf, f"{root}/x"),
        lambda tf, root: list(tf.data.Dataset.list_files(f"{root}/*")),
    ],
    ids=["glob", "exists", "read", "write", "list_files"],
)
def test_an_unreachable_namenode_is_an_error_in_limited_time(
    tf: Any, action: Callable[[Any, str], Any]
) -> None:
    start = time.monotonic()
    with pytest.raises(tf.errors.UnavailableError, match=r"127\.0\.0\.1:1/.*refused"):
        action(tf, UNREACHABLE)
    assert time.monotonic() - start < 10


def test_the_users_retries_win(tmp_path: Path) -> None:
    name = "dfs.client.failover.max.attempts"
    setting = f"<configuration><property><name>{name}</name><value>0</value></property></configuration>"
    (tmp_path / "hdfs-site.xml").write_text(setting)
    code = f"""
        import time
        start = time.monotonic()
        try:
            tf.io.gfile.exists("{UNREACHABLE}/x")
        except tf.errors.UnavailableError:
            print(time.monotonic() - start)
    """
    assert float(run_python(code, HADOOP_CONF_DIR=str(tmp_path))) < 0.5


def test_a_wrong_setting_is_named() -> None:
    code = f"""
        try:
            tf.io.gfile.exists("{UNREACHABLE}/x")
        except tf.errors.InvalidArgumentError as error:
            print(error.message)
    """
    expected = 'TFY_HDFS_THREADS: "many" is not a whole number from 1 on\n'
    assert run_python(code, TFY_HDFS_THREADS="many") == expected


# --- TensorFlow on top --------------------------------------------------------------------------
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_tfrecords_are_written_and_read(tf: Any, folder: str, compression: str) -> None:
    records = [os.urandom(size) for size in (0, 1, 1000, 100_000)] * 50
    with tf.io.TFRecordWriter(f"{folder}/part-0", compression) as writer:
        for record in records:
            writer.write(record)
    files = tf.data.Dataset.list_files(f"{folder}/part-*")
    dataset = files.interleave(lambda path: tf.data.TFRecordDataset(path, compression), num_parallel_calls=2)
    assert [record.numpy() for record in dataset] == records


def test_checkpoints_are_saved_rotated_and_restored(tf: Any, folder: str) -> None:
    variable = tf.Variable(tf.random.normal([1000, 10]))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=variable), f"{folder}/model", max_to_keep=2)
    for _ in range(3):
        variable.assign_add(tf.ones_like(variable))
        manager.save()
    saved = variable.numpy()
    variable.assign(tf.zeros_like(variable))
    latest = tf.train.latest_checkpoint(f"{folder}/model")
    assert latest == f"{folder}/model/ckpt-3"
    tf.train.Checkpoint(v=variable).restore(latest).assert_consumed()
    assert (variable.numpy() == saved).all()
    assert sorted(tf.io.gfile.glob(f"{folder}/model/*.index")) == [
        f"{folder}/model/ckpt-2.index",
        f"{folder}/model/ckpt-3.index",
    ]


def test_summaries_can_be_read_once_they_are_closed(tf: Any, folder: str) -> None:
    with tf.summary.create_file_writer(f"{folder}/logs").as_default() as writer:
        for step in range(5):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    writer.close()
    (path,) = tf.io.gfile.glob(f"{folder}/logs/events*")
    # The version of the file, then five values.
    assert len(list(tf.data.TFRecordDataset(path))) == 6


def test_saved_models_come_back(tf: Any, folder: str) -> None:
    module = tf.Module()
    module.v = tf.Variable(3.0)
    module.triple = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, f"{folder}/saved")
    loaded = tf.saved_model.load(f"{folder}/saved")
    assert float(loaded.triple(tf.constant(2.0))) == 6.0


# --- configuration, counters, fork ------------------------------------------------------------------
def test_the_default_file_system_comes_from_the_configuration(tf: Any, hdfs: Hdfs, folder: str) -> None:
    path = folder.removeprefix(hdfs.uri)
    write(tf, f"{folder}/file", b"found")
    code = f"""
        tf.io.gfile.rename("hdfs://{path}/file", "{folder}/moved")
        print(tf.io.read_file("hdfs://{path}/moved").numpy().decode())
    """
    assert run_python(code, HADOOP_CONF_DIR=str(hdfs.conf_dir)) == "found\n"


@pytest.mark.parametrize("read_ahead", ["4194304", "0"])
def test_counters_are_exact(tf: Any, folder: str, read_ahead: str) -> None:
    sizes = [0, 10, 300_000, 5_000_000]
    code = f"""
        import json
        sizes = {sizes}
        for index, size in enumerate(sizes):
            with tf.io.gfile.GFile(f"{folder}/{{index}}", "wb") as file:
                file.write(b"x" * size)
        before = read_counters()
        data = [len(tf.io.read_file(path).numpy()) for path in sorted(tf.io.gfile.glob("{folder}/*"))]
        after = read_counters()
        assert data == sizes
        print(json.dumps([before.bytes_written, before.bytes_read, before.reads, after.bytes_read]))
        assert after.reads >= 3
    """
    told = json.loads(run_python(code, TFY_HDFS_READ_AHEAD_BYTES=read_ahead))
    assert told == [sum(sizes), 0, 0, sum(sizes)]


def test_a_dataset_counts_each_byte_of_its_files_once(tf: Any, folder: str) -> None:
    for index in range(3):
        with tf.io.TFRecordWriter(f"{folder}/{index}") as writer:
            for _ in range(2000):
                writer.write(os.urandom(1024))
    size = sum(tf.io.gfile.stat(path).length for path in tf.io.gfile.glob(f"{folder}/*"))
    before = read_counters().bytes_read
    dataset = tf.data.TFRecordDataset(tf.io.gfile.glob(f"{folder}/*"))
    assert sum(1 for _ in dataset) == 6000
    assert read_counters().bytes_read - before == size


def test_a_forked_child_reads_and_writes_and_its_parent_never_stops(tf: Any, folder: str) -> None:
    code = f"""
        import os, time
        data = os.urandom(8 << 20)
        with tf.io.gfile.GFile("{folder}/file", "wb") as file:
            file.write(data)
        inherited = tf.io.gfile.GFile("{folder}/file", "rb")
        inherited.read(1)
        assert tf.io.read_file("{folder}/file").numpy() == data
        child = os.fork()
        if not child:
            status = 1
            try:
                assert read_counters().bytes_read == read_counters().bytes_written == 0
                assert tf.io.read_file("{folder}/file").numpy() == data
                with tf.io.gfile.GFile("{folder}/child", "wb") as file:
                    file.write(b"child")
                try:
                    inherited.seek(5 << 20)
                    inherited.read(1)
                except tf.errors.FailedPreconditionError as error:
                    assert "file: the file was opened before fork()" in error.message, error
                    assert read_counters().bytes_read == len(data)
                    status = 0
            finally:
                os._exit(status)
        longest = 0.0
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            start = time.monotonic()
            assert tf.io.read_file("{folder}/file").numpy() == data
            longest = max(longest, time.monotonic() - start)
        print(os.waitstatus_to_exitcode(ended[1]), longest, tf.io.read_file("{folder}/child").numpy())
    """
    status, longest, written = run_python(code).split()
    assert (status, written) == ("0", "b'child'")
    assert float(longest) < 10
