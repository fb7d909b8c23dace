"""Logs while their application runs: from the NodeManagers' web services, by byte ranges.

A NodeManager serves a container's files until its application has ended and the logs are aggregated.
It takes no range but `size=-N`, the last N bytes, and says in the answer how long the file was then:
from both follows exactly which bytes came.
"""

from __future__ import annotations

import http.client
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO, NoReturn, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from tfy.errors import UnreachableError
from tfy.yarn.logs_model import PIECE_BYTES, GoneError, Listing, Place, read_header

REST_LIMIT_S = 10.0
# A node that did not answer is not asked again for this long: the others' logs go on meanwhile.
_REST_OF_A_NODE_S = 10.0
# Whether a container has ended is asked no more often than this: one question less a round.
_ASK_STATE_S = 2.0
# More than a busy program writes between two answers.
_SLACK_BYTES = 64 << 10
_TRIES = 8
_ENDED_STATES = ("DONE", "COMPLETE")


class _File(msgspec.Struct, rename="camel", frozen=True):
    file_name: str
    file_size: str | int


class _Info(msgspec.Struct, rename="camel", frozen=True):
    container_log_info: list[_File] | _File = []
    log_aggregation_type: str = "LOCAL"


class _Logs(msgspec.Struct, rename="camel", frozen=True):
    container_logs_info: list[_Info] | _Info = []


class _State(msgspec.Struct, frozen=True):
    state: str = ""


class _Container(msgspec.Struct, frozen=True):
    container: _State


Answer = TypeVar("Answer")
Result = TypeVar("Result")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A NodeManager that sends elsewhere does not have the logs itself."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        return None


class NodeManagers:
    """The web services of a cluster's NodeManagers, as a source of logs."""

    def __init__(
        self, scheme: str, user: str, *, limit_s: float = REST_LIMIT_S, ask_state_s: float = _ASK_STATE_S
    ) -> None:
        """`scheme` is http or https; `limit_s` holds for each answer of the network.

        A container that ran is taken to run still for `ask_state_s` seconds: its end is known later, never
        too early.
        """
        self._scheme = scheme
        self._user = user
        self._limit_s = limit_s
        self._ask_state_s = ask_state_s
        self._ran: dict[str, float] = {}
        # The environment's proxies are for the world outside.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
        self._silent: dict[str, float] = {}

    def look(self, place: Place) -> Listing:
        """The container's files at this moment."""
        if time.monotonic() < self._ran.get(place.container_id, -math.inf) + self._ask_state_s:
            sizes = self._list(place)
            if sizes:
                return Listing(sizes, final=False)
        # The state first: what a container that had ended by then has written is all there will be.
        known, ended = True, False
        try:
            answer = self._ask(place, "", lambda body: _decode(body.read(), _Container))
            ended = answer.container.state in _ENDED_STATES
        except GoneError:
            known, ended = False, True
        sizes = self._list(place)
        if not sizes and not known:
            raise GoneError(f"{place.container_id}: {place.node_web} has no logs of it")
        if not ended:
            self._ran[place.container_id] = time.monotonic()
        return Listing(sizes, ended)

    def _list(self, place: Place) -> dict[str, int]:
        logs = self._ask(place, "/logs", lambda body: _decode(body.read(), _Logs))
        infos = logs.container_logs_info
        return {
            file.file_name: int(file.file_size)
            for info in (infos if isinstance(infos, list) else [infos])
            if info.log_aggregation_type == "LOCAL"
            for file in _as_list(info.container_log_info)
        }

    def read(self, place: Place, name: str, start: int, size: int) -> bytes:
        """A piece of a file from byte `start`, of a file that had at least `size` bytes; empty at its end."""
        wanted = size - start
        for _ in range(_TRIES):
            if wanted <= 0:
                return b""
            length, data = self._read_end(place, name, start, wanted)
            if data is not None:
                return data
            # It has grown since: the bytes that are wanted are no longer among its last ones.
            wanted = length - start + _SLACK_BYTES + (length - size)
            size = length
        raise UnreachableError(f"{place.task}: {name} grows faster than {place.node_web} gives it out")

    def _read_end(self, place: Place, name: str, start: int, wanted: int) -> tuple[int, bytes | None]:
        """The file's length and, from `start`, what its last `wanted` bytes hold; None: they begin later."""

        def read(body: IO[bytes]) -> tuple[int, bytes | None]:
            length = read_header(body, f"{place.node_web}, {name}")
            first = max(length - wanted, 0)
            if first > start:
                return length, None
            for skipped in range(first, start, PIECE_BYTES):
                body.read(min(PIECE_BYTES, start - skipped))
            return length, body.read(max(min(length - start, PIECE_BYTES), 0))

        return self._ask(place, f"/logs/{quote(name)}", read, size=-wanted)

    def _ask(self, place: Place, path: str, use: Callable[[IO[bytes]], Result], **query: int) -> Result:
        """What `use` makes of an answer of the container's NodeManager."""
        node = place.node_web
        if node is None:
            raise GoneError(f"{place.container_id}: its NodeManager is not known")
        if time.monotonic() < self._silent.get(node, 0.0):
            raise UnreachableError(f"{node} did not answer a moment ago")
        tail = urlencode({**query, "user.name": self._user})
        url = f"{self._scheme}://{node}/ws/v1/node/containers/{place.container_id}{path}?{tail}"
        request = urllib.request.Request(url, headers={"Accept": "application/json, text/plain"})
        try:
            with self._opener.open(request, timeout=self._limit_s) as body:
                return use(body)
        except urllib.error.HTTPError as error:
            with error:
                _refuse(node, place, error)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._silent[node] = time.monotonic() + _REST_OF_A_NODE_S
            reason = getattr(error, "reason", error) or type(error).__name__
            raise UnreachableError(f"the NodeManager {node} does not answer: {reason}") from error


def _refuse(node: str, place: Place, error: urllib.error.HTTPError) -> NoReturn:
    """A NodeManager does not know what has ended (404, which 3.5 wraps in a 503), or sends elsewhere."""
    said = error.read(2000)
    if error.code == 404 or 300 <= error.code < 400 or b"HTTP 404" in said:
        raise GoneError(f"{place.container_id}: {node} does not have it") from error
    raise UnreachableError(f"the NodeManager {node} refuses the logs: {error.code} {error.reason}") from error


def _decode(data: bytes, answer: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(data, type=answer)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"not a NodeManager's answer: {error}") from error


def _as_list(files: list[_File] | _File) -> list[_File]:
    return files if isinstance(files, list) else [files]
