"""The storage's door: errors that name what was asked for, and no wait without a limit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import open_hdfs
from tests.waiting import wait_until
from tfy.errors import UnreachableError
from tfy.storage import hdfs
from tfy.storage.hdfs import NotFoundError, Storage


@pytest.fixture
def silent() -> Iterator[str]:
    """A NameNode that accepts connections and then says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"hdfs://127.0.0.1:{server.getsockname()[1]}"


def test_a_silent_namenode_is_not_waited_for(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "READ_LIMIT_S", 0.5)
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="/user/me/x: HDFS does not answer within"):
        Storage(silent, {}).read(f"{silent}/user/me/x")
    assert time.monotonic() - began < 10


def test_ctrl_c_is_heard_while_hdfs_is_silent(silent: str, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    script = f"""
from pathlib import Path
from tfy.storage.hdfs import Storage
storage = Storage({silent!r}, {{}})
Path({str(waiting)!r}).touch()
storage.read({silent!r} + "/x")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    wait_until(waiting.exists, limit_s=30, what="the read begins")
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(5) != 0


def test_a_refused_connection_names_the_path() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        uri = f"hdfs://127.0.0.1:{nobody.getsockname()[1]}"
    storage = Storage(uri, {"dfs.client.failover.max.attempts": "1"})
    with pytest.raises(UnreachableError, match="/user/me/x: "):
        storage.read(f"{uri}/user/me/x")


@pytest.mark.cluster
def test_files_on_the_real_one(cluster: LocalHadoop, tmp_path: Path) -> None:
    storage = Storage(cluster.uri, {})
    folder = f"{cluster.uri}/tmp/tfy-storage-test"
    storage.make_folder(folder)
    with pytest.raises(NotFoundError, match="nothing: no such file"):
        storage.read(f"{folder}/nothing")
    storage.write(f"{folder}/a", b"old")
    storage.publish(f"{folder}/a", b"new")
    assert storage.read(f"{folder}/a") == b"new"
    (tmp_path / "big").write_bytes(b"x" * (9 << 20))
    storage.upload(tmp_path / "big", f"{folder}/big")
    listed = {
        status.path.rpartition("/")[2]: status
        for status in open_hdfs(cluster).list_status(folder[len(cluster.uri) :])
    }
    assert {name: status.length for name, status in listed.items()} == {"a": 3, "big": 9 << 20}
    assert {status.permission for status in listed.values()} == {0o600}
    assert open_hdfs(cluster).get_file_info(folder[len(cluster.uri) :]).permission == 0o700
    storage.delete(folder)
    storage.delete(folder)
    with pytest.raises(NotFoundError):
        storage.read(f"{folder}/a")
