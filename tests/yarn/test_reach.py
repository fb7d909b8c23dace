"""A ResourceManager that is not up is told at once, by every verb."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.job_files import SMALLEST, make_folder
from tfy.cli import main
from tfy.errors import EXIT_UNREACHABLE
from tfy.yarn.application import NoAnswerError
from tfy.yarn.reach import require_resource_manager

KEY = "yarn.resourcemanager.address"
SITE = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_only_a_plain_refusal_of_all_is_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        up = f"127.0.0.1:{server.getsockname()[1]}"
        down = closed_port()
        with pytest.raises(NoAnswerError, match=f"no ResourceManager listens at {down}"):
            require_resource_manager({KEY: down})
        pair = {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b"}
        require_resource_manager({**pair, f"{KEY}.a": down, f"{KEY}.b": up})
        also = closed_port()
        with pytest.raises(NoAnswerError, match=f"{down}, {also}"):
            require_resource_manager({**pair, f"{KEY}.a": down, f"{KEY}.b": also})
    for unknown in ({}, {KEY: "0.0.0.0:8032"}, {KEY: "no.such.host.invalid:1"}, {KEY: "a:b"}):
        require_resource_manager(unknown)


@pytest.mark.parametrize(
    "command", [["ls"], ["status", "digits"], ["kill", "digits"], ["wait", "digits"], ["submit", "job.yaml"]]
)
def test_every_verb_tells_at_once(command: list[str], tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "job.yaml").write_text(SMALLEST)
    (tmp_path / "core-site.xml").write_text(SITE.format("fs.defaultFS", "hdfs://127.0.0.1:1"))
    (tmp_path / "yarn-site.xml").write_text(SITE.format(KEY, closed_port()))
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        environ = {**os.environ, "HADOOP_CONF_DIR": str(tmp_path)}
        result = CliRunner().invoke(main, command, env=environ)
    assert result.exit_code == EXIT_UNREACHABLE
    assert "error: no ResourceManager listens at 127.0.0.1:" in result.stderr
    assert time.monotonic() - began < 10
