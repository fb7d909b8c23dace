"""What hdfs:// says where something is wrong, and how long it takes to say it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.hdfs_files import read, run_python, write

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

# Port 1 refuses connections.
UNREACHABLE = "hdfs://127.0.0.1:1"


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


def test_a_namenode_that_does_not_answer_is_an_error_in_limited_time(tf: Any) -> None:
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1))
        # The kernel drops further attempts once the queue is full.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        start = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError, match="/x: no answer from the NameNode"):
            tf.io.gfile.exists(f"hdfs://127.0.0.1:{silent.getsockname()[1]}/x")
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
