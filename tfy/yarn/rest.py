"""The ResourceManager's REST interface: looking without a Java process.

It serves a command in milliseconds where Skein's client needs seconds for its JVM. It can say no
(Kerberos, a gateway that hides it, no address in the configuration): `RestError`, and whoever
asked takes Skein's client.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tfy.bounded import call_within
from tfy.states import ApplicationState, parse_application_state
from tfy.yarn.application import SKEIN_TYPE, Application, NoAnswerError, Wanted, sort_applications
from tfy.yarn.reach import find_sockets

REST_LIMIT_S = 10.0
# YARN's own defaults.
_HTTP_PORT, _HTTPS_PORT = "8088", "8090"
_OPEN_STATES = tuple(
    state.name for state in ApplicationState if not state.final and state is not ApplicationState.UNKNOWN
)
# What is not read is not sent either.
_UNREAD = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"


class RestError(NoAnswerError):
    """REST gives no answer that can be used."""


class _App(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One application as REST tells it. Times are milliseconds since the epoch, 0 for not yet."""

    id: str
    name: str
    user: str
    queue: str
    state: str
    final_status: str
    application_type: str
    application_tags: str = ""
    diagnostics: str | None = None
    tracking_url: str | None = None
    started_time: int = 0
    finished_time: int = 0


class _LogApp(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    am_container_logs: str = ""
    log_aggregation_status: str = ""


class _LogAnswer(msgspec.Struct, frozen=True):
    app: _LogApp


@dataclass(frozen=True, slots=True)
class ApplicationLogs:
    """What YARN says of one application's logs: where its master's are, and how far aggregation is.

    `master` and `node_web` (the NodeManager's `host:port`) are None where there is no master yet.
    `aggregation` is YARN's word (`NOT_START`, `SUCCEEDED`, `DISABLED`, …), empty where it has none.
    """

    master: str | None
    node_web: str | None
    aggregation: str


class _Apps(msgspec.Struct, frozen=True):
    app: list[_App] = []


class _ListAnswer(msgspec.Struct, frozen=True):
    apps: _Apps | None = None


class _ReportAnswer(msgspec.Struct, frozen=True):
    app: _App


class _Refusal(msgspec.Struct, rename="pascal", frozen=True):
    remote_exception: dict[str, object]


Answer = TypeVar("Answer")


def find_addresses(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The ResourceManagers' web addresses, as `http://host:port`; none where the configuration has none.

    With high availability, each ResourceManager's; a standby sends whoever asks to the active one.
    """
    if properties.get("yarn.http.policy", "HTTP_ONLY").upper() == "HTTPS_ONLY":
        scheme, found = "https", find_sockets(properties, "webapp.https.address", _HTTPS_PORT)
    else:
        scheme, found = "http", find_sockets(properties, "webapp.address", _HTTP_PORT)
    return tuple(f"{scheme}://{address}" for address in found)


def parse_list(data: bytes) -> tuple[Application, ...]:
    """The answer to `/ws/v1/cluster/apps`, oldest first. Raises `RestError` where it is none."""
    apps = _decode(data, _ListAnswer).apps
    return sort_applications([_convert(app) for app in apps.app] if apps else [])


def parse_report(data: bytes) -> Application:
    """The answer to `/ws/v1/cluster/apps/<id>`. Raises `RestError` where it is none."""
    return _convert(_decode(data, _ReportAnswer).app)


def parse_logs(data: bytes) -> ApplicationLogs:
    """The answer to `/ws/v1/cluster/apps/<id>`, as far as it is about logs."""
    app = _decode(data, _LogAnswer).app
    # http://host:port/node/containerlogs/<container>/<user>
    url = urlsplit(app.am_container_logs)
    found = re.search(r"/(container_\w+)/", url.path)
    return ApplicationLogs(
        master=found.group(1) if found else None,
        node_web=url.netloc or None,
        aggregation=app.log_aggregation_status,
    )


def says_unknown(data: bytes) -> bool:
    """Whether a refusal is the ResourceManager's own: it knows no such application."""
    try:
        refusal = msgspec.json.decode(data, type=_Refusal)
    except msgspec.MsgspecError:
        return False
    kind, said = (str(refusal.remote_exception.get(key, "")) for key in ("exception", "message"))
    return kind == "NotFoundException" or "Invalid ApplicationId" in said


class RmRest:
    """The ResourceManagers of one cluster, by REST."""

    def __init__(self, addresses: tuple[str, ...], user: str, *, limit_s: float = REST_LIMIT_S) -> None:
        """`addresses` as of `find_addresses`, at least one; `limit_s` holds for each call as a whole."""
        self._addresses = addresses
        self._user = user
        self._limit_s = limit_s
        # The environment's proxies are for the world outside.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def report(self, application_id: str) -> Application | None:
        """The application, of whatever type, or None where YARN does not know it (any more)."""
        data = self._get(f"/ws/v1/cluster/apps/{quote(application_id, safe='')}", {})
        return None if data is None else parse_report(data)

    def report_logs(self, application_id: str) -> ApplicationLogs | None:
        """About the application's logs, or None where YARN does not know it (any more)."""
        data = self._get(f"/ws/v1/cluster/apps/{quote(application_id, safe='')}", {})
        return None if data is None else parse_logs(data)

    def list_applications(self, wanted: Wanted) -> tuple[Application, ...]:
        """Jobs' Skein applications, oldest first."""
        query = {"applicationTypes": SKEIN_TYPE, "applicationTags": wanted.tag, "deSelects": _UNREAD}
        if wanted.user is not None:
            query["user"] = wanted.user
        if not wanted.ended:
            query["states"] = ",".join(_OPEN_STATES)
        data = self._get("/ws/v1/cluster/apps", query)
        if data is None:
            raise RestError("the ResourceManager does not list its applications")
        # A redirect may lose the query: what does not match goes here at the latest.
        return tuple(found for found in parse_list(data) if wanted.matches(found))

    def _get(self, path: str, query: Mapping[str, str]) -> bytes | None:
        # As Hadoop's own client does without Kerberos: who asks is who says so.
        tail = f"{path}?{urlencode({**query, 'user.name': self._user})}"
        try:
            return call_within(self._limit_s, lambda: self._try_each(tail), thread="rest")
        except TimeoutError as error:
            raise RestError(f"{', '.join(self._addresses)}: {error}") from error

    def _try_each(self, tail: str) -> bytes | None:
        """The first answer of a ResourceManager; None where it is that it knows no such thing."""
        failures = []
        limit_s = self._limit_s / len(self._addresses)
        for address in self._addresses:
            try:
                with self._opener.open(f"{address}{tail}", timeout=limit_s) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    if says_unknown(error.read()):
                        return None
                failures.append(f"{address}: {error.code} {error.reason}")
            except (OSError, ValueError, http.client.HTTPException) as error:
                # Refused, reset, too slow, no such host, no HTTP.
                failures.append(f"{address}: {getattr(error, 'reason', error)}")
        raise RestError(f"the ResourceManager does not answer: {'; '.join(failures)}")


def _decode(data: bytes, answer: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(data, type=answer)
    except msgspec.MsgspecError as error:
        raise RestError(f"not the ResourceManager's answer: {error}") from error


def _convert(app: _App) -> Application:
    return Application(
        id=app.id,
        name=app.name,
        user=app.user,
        queue=app.queue,
        tags=tuple(sorted(tag for tag in app.application_tags.split(",") if tag)),
        state=parse_application_state(app.state),
        final_status=app.final_status.lower(),
        diagnostics=app.diagnostics or "",
        tracking_url=app.tracking_url or "",
        started=_moment(app.started_time),
        finished=_moment(app.finished_time),
        type=app.application_type.lower(),
    )


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc) if milliseconds > 0 else None
