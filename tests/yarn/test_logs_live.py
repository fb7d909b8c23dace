"""The NodeManagers' web service: exact ranges, and what is gone, silent or refused.

The server answers as the NodeManager of Hadoop 3.5.0 does; the same is read from a real one in
tests/jobs/test_logs.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.web import Answer, Web, serve
from tfy.errors import UnreachableError
from tfy.yarn.logs_live import NodeManagers
from tfy.yarn.logs_model import PIECE_BYTES, GoneError, Listing, Place

CONTAINER = "container_e17_1796139250311_0003_01_000002"
LOGS = f"/ws/v1/node/containers/{CONTAINER}/logs"
# Whatever a program may write, also what looks like the NodeManager's own words.
LOG = b"one\r\ntwo\xff\nLogLength:3\nLogContents:\n\nEnd of LogType:worker-1.log\n" + b"x" * 100 + b"\nlast"
UNKNOWN = (
    b'{"RemoteException":{"exception":"WebApplicationException","message":"HTTP 404 Not Found",'
    b'"javaClassName":"org.apache.hadoop.shaded.javax.ws.rs.WebApplicationException"}}'
)


def make_log(name: str, log: bytes, size: int) -> bytes:
    """As NMWebServices does: the header, the last -`size` bytes, and what follows them."""
    head = (
        f"Container: {CONTAINER} on 127.0.0.2:23417\nLogAggregationType: LOCAL\n{'=' * 68}\nLogType:{name}\n"
        f"LogLastModifiedTime:Tue Dec 01 15:51:27 +0000 2026\nLogLength:{len(log)}\nLogContents:\n"
    )
    assert size < 0
    tail = f"End of LogType:{name}.This log file belongs to a running container ({CONTAINER})\n*****\n\n"
    return head.encode() + log[size:] + tail.encode()


class Node:
    """A NodeManager with one container; a test changes what it has."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"worker-1.log": LOG, "prelaunch.err": b""}
        self.state: str | None = "RUNNING"
        self.on_read: Callable[[], None] = lambda: None

    def answer(self, path: str) -> Answer:
        url = urlsplit(path)
        if url.path == LOGS:
            files = [{"fileName": name, "fileSize": str(len(log))} for name, log in self.files.items()]
            info = {"containerLogInfo": files} if files else {}
            return as_json({"containerLogsInfo": {**info, "logAggregationType": "LOCAL"}})
        if url.path == LOGS.removesuffix("/logs"):
            return as_json({"container": {"state": self.state}}) if self.state else Answer(404, b"")
        name = url.path.removeprefix(f"{LOGS}/")
        if name not in self.files:
            return Answer(404, b"HTTP 404 Not Found")
        self.on_read()
        return Answer(body=make_log(name, self.files[name], int(parse_qs(url.query)["size"][0])))


def as_json(value: object) -> Answer:
    return Answer(body=json.dumps(value).encode())


def place_at(web: Web) -> Place:
    return Place(container_id=CONTAINER, task="worker:1", node_web=web.address.removeprefix("http://"))


@contextmanager
def running(answer: Callable[[str], Answer]) -> Iterator[tuple[NodeManagers, Place, Web]]:
    with serve(answer) as web:
        yield NodeManagers("http", "me", limit_s=5.0, ask_state_s=0.0), place_at(web), web


def test_a_container_is_listed() -> None:
    node = Node()
    with running(node.answer) as (nodes, place, web):
        assert nodes.look(place) == Listing({"worker-1.log": len(LOG), "prelaunch.err": 0}, final=False)
        assert all("user.name=me" in path for path in web.asked)
        for state in ("DONE", None):
            node.state = state
            assert nodes.look(place).final
        node.files = {}
        with pytest.raises(GoneError):
            nodes.look(place)


def test_a_container_that_ran_a_moment_ago_is_not_asked_for_its_state() -> None:
    node = Node()
    with serve(node.answer) as web:
        nodes, place = NodeManagers("http", "me", limit_s=5.0, ask_state_s=60.0), place_at(web)
        nodes.look(place)
        node.files["worker-1.log"] += b"more"
        node.state = "DONE"
        # Not known to have ended, it is looked at again.
        assert nodes.look(place) == Listing({"worker-1.log": len(LOG) + 4, "prelaunch.err": 0}, final=False)
        assert [urlsplit(path).path for path in web.asked] == [LOGS.removesuffix("/logs"), LOGS, LOGS]
        # Where there is nothing, whether it is known at all decides.
        node.files, node.state = {}, None
        with pytest.raises(GoneError):
            nodes.look(place)


@pytest.mark.parametrize("start", [0, 1, 4, 50, len(LOG) - 1])
@pytest.mark.parametrize("size", [len(LOG), len(LOG) - 1, 51])
def test_every_range_is_exact(start: int, size: int) -> None:
    with running(Node().answer) as (nodes, place, _web):
        data = nodes.read(place, "worker-1.log", start, size)
        if start >= size:
            assert data == b""
        else:
            # It may be more than was listed: the file as it is now.
            assert data == LOG[start:]


@pytest.mark.parametrize("growth", [1, 10_000, 300_000])
def test_a_log_that_grows_while_it_is_read_loses_nothing(growth: int) -> None:
    node = Node()
    log = bytes(index % 251 for index in range(growth * 10 + 1000))
    node.files["worker-1.log"] = log[:1000]

    def grow() -> None:
        node.files["worker-1.log"] = log[: len(node.files["worker-1.log"]) + growth]

    node.on_read = grow
    with running(node.answer) as (nodes, place, _web):
        read = nodes.read(place, "worker-1.log", 10, 1000)
        read += nodes.read(place, "worker-1.log", 10 + len(read), 1000 + growth)
    assert len(read) >= 990
    assert read == log[10 : 10 + len(read)]


def test_a_large_log_comes_in_pieces() -> None:
    node = Node()
    log = b"".join(b"%07d\n" % number for number in range(PIECE_BYTES // 8 * 2 + 5))
    node.files["worker-1.log"] = log
    parts: list[bytes] = []
    with running(node.answer) as (nodes, place, _web):
        while data := nodes.read(place, "worker-1.log", sum(map(len, parts)), len(log)):
            parts.append(data)
    assert [len(part) for part in parts] == [PIECE_BYTES, PIECE_BYTES, 40]
    assert b"".join(parts) == log


@pytest.mark.parametrize(
    "refusal",
    [
        Answer(404, b"HTTP 404 Not Found"),
        Answer(503, UNKNOWN),
        Answer(307, b"", (("Location", "http://127.0.0.1:1/jobhistory/logs"),)),
    ],
)
def test_what_a_node_does_not_have_is_gone(refusal: Answer) -> None:
    with running(lambda _path: refusal) as (nodes, place, _web):
        with pytest.raises(GoneError):
            nodes.look(place)
        with pytest.raises(GoneError):
            nodes.read(place, "worker-1.log", 0, 10)


@pytest.mark.parametrize(
    "answer",
    [Answer(500, b"oops"), Answer(503, b"busy"), Answer(401, b""), Answer(200, b"<html>"), Answer(200, b"")],
)
def test_any_other_answer_is_no_answer(answer: Answer) -> None:
    with running(lambda _path: answer) as (nodes, place, _web):
        for ask in (lambda: nodes.look(place), lambda: nodes.read(place, "worker-1.log", 0, 10)):
            with pytest.raises(UnreachableError) as caught:
                ask()
            assert not isinstance(caught.value, GoneError)


def test_a_silent_node_is_left_alone_for_a_while() -> None:
    with serve(lambda _path: Answer()) as web:
        place = place_at(web)
    nodes = NodeManagers("http", "me", limit_s=5.0)
    with pytest.raises(UnreachableError, match="does not answer: "):
        nodes.look(place)
    with pytest.raises(UnreachableError, match="did not answer a moment ago"):
        nodes.look(place)


def test_a_container_of_an_unknown_node_is_gone() -> None:
    with pytest.raises(GoneError):
        NodeManagers("http", "me").look(Place(container_id=CONTAINER, task="worker:1"))
