"""What TensorFlow builds on files, and a process on the plugin: datasets, checkpoints, counters, fork."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Hdfs
from tests.runtime.hdfs_files import read, run_python, write
from tfy.runtime.filesystem import read_counters

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


# --- TensorFlow on top ------------------------------------------------------------------------
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


# --- configuration, counters, fork ------------------------------------------------------------
def test_the_default_file_system_comes_from_the_configuration(tf: Any, hdfs: Hdfs, folder: str) -> None:
    path = folder.removeprefix(hdfs.uri)
    write(tf, f"{folder}/file", b"found")
    code = f"""
        tf.io.gfile.rename("hdfs://{path}/file", "{folder}/moved")
        print(tf.io.read_file("hdfs://{path}/moved").numpy().decode())
    """
    assert run_python(code, HADOOP_CONF_DIR=str(hdfs.conf_dir)) == "found\n"


def test_viewfs_leads_to_what_is_mounted(tf: Any, hdfs: Hdfs, folder: str, tmp_path: Path) -> None:
    settings = {
        "fs.defaultFS": "viewfs://all",
        "fs.viewfs.mounttable.all.link./mounted": folder,
        "fs.viewfs.mounttable.all.linkFallback": f"{hdfs.uri}/",
    }
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    )
    (tmp_path / "core-site.xml").write_text(f"<configuration>{rows}</configuration>")
    code = """
        with tf.io.gfile.GFile("viewfs://all/mounted/file", "w") as file:
            file.write("seen")
        print(tf.io.gfile.glob("viewfs://all/mounted/*"), tf.io.gfile.listdir("viewfs:///mounted"))
        tf.io.gfile.rename("viewfs:///mounted/file", "viewfs://all/mounted/new")
    """
    told = "['viewfs://all/mounted/file'] ['file']\n"
    assert run_python(code, HADOOP_CONF_DIR=str(tmp_path)) == told
    assert read(tf, f"{folder}/new") == b"seen"


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
