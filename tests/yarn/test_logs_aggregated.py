"""The aggregated logs and their Java process: what keeps them from being read, and for how long."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tfy.errors import UnreachableError
from tfy.yarn.hadoop import Hadoop
from tfy.yarn.logs_aggregated import AggregatedLogs
from tfy.yarn.logs_java import open_gateway
from tfy.yarn.logs_model import GoneError, Place

PLACES = tuple(
    Place(container_id=f"container_1_0001_01_{number:06d}", task=f"worker:{number}") for number in (2, 3)
)
REFUSED = "the Java process that reads aggregated logs did not start: no memory"


class Starts:
    """A Java process that never starts."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def __call__(self) -> object:
        self.threads.append(threading.current_thread())
        raise UnreachableError(REFUSED)


def make_java(folder: Path, script: str) -> Mapping[str, str]:
    """The environment in which `java` is this shell script."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": "/usr/bin:/bin"}


def make_hadoop(folder: Path) -> Hadoop:
    return Hadoop(conf_dir=folder, yarn=None, source="environment", properties={})


def test_each_container_of_an_application_tells_why_it_cannot_be_read(tmp_path: Path) -> None:
    starts = Starts()
    logs = AggregatedLogs(starts, "me", tmp_path)
    for place in PLACES:
        with pytest.raises(UnreachableError, match=REFUSED) as caught:
            logs.look(place)
        assert not isinstance(caught.value, GoneError)
    # One question serves both.
    assert len(starts.threads) == 1


def test_the_java_process_starts_where_it_is_asked_for_not_in_a_thread_that_is_given_up(
    tmp_path: Path,
) -> None:
    starts = Starts()
    with pytest.raises(UnreachableError, match=REFUSED):
        AggregatedLogs(starts, "me", tmp_path).list_containers("application_1_0001")
    assert starts.threads == [threading.current_thread()]


@pytest.mark.parametrize("script", ["exec cat", "echo 25333; exec cat", "printf 25; exec cat"])
def test_a_java_process_that_does_not_tell_its_address_is_not_waited_for(script: str, tmp_path: Path) -> None:
    environ = make_java(tmp_path, f"echo 'OutOfMemory' >&2; {script}")
    said = re.escape("did not start within 0.5 s: OutOfMemory")
    with (
        pytest.raises(UnreachableError, match=said),
        open_gateway(make_hadoop(tmp_path), environ, tmp_path / "java.log", limit_s=0.5),
    ):
        pass


def test_a_java_process_that_ends_tells_its_last_words_at_once(tmp_path: Path) -> None:
    environ = make_java(tmp_path, "echo 'Error: no main class' >&2; exit 1")
    with (
        pytest.raises(UnreachableError, match="did not start: Error: no main class"),
        open_gateway(make_hadoop(tmp_path), environ, tmp_path / "java.log", limit_s=60.0),
    ):
        pass


def test_a_java_process_may_say_as_much_as_it_likes(tmp_path: Path) -> None:
    said = tmp_path / "said"
    chatter = "head -c 300000 /dev/zero | tr '\\0' x"
    environ = make_java(
        tmp_path, f"echo Warning: one; echo 25333; echo secret; {chatter}; touch {said}; exec cat"
    )
    with open_gateway(make_hadoop(tmp_path), environ, tmp_path / "java.log") as gateway:
        assert gateway.gateway_parameters.port == 25333
        assert gateway.gateway_parameters.auth_token == "secret"
        wait_until(said.exists, limit_s=10, what="a Java process that has said all")
