"""The ResourceManager's REST interface: its addresses, its answers, and what is no answer."""

from __future__ import annotations

import json
import socket
import threading
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.conftest import LocalHadoop
from tests.web import Answer, serve
from tfy.states import ApplicationState
from tfy.storage.hadoop_conf import read_properties
from tfy.yarn.application import Application, Wanted
from tfy.yarn.rest import RestError, RmRest, find_addresses, parse_list, parse_report, says_unknown
from tfy.yarn.session import QuickYarn, find_cluster, open_yarn

RM = "yarn.resourcemanager"
HA = {f"{RM}.ha.enabled": "true", f"{RM}.ha.rm-ids": "rm1, rm2"}

# As the ResourceManager of Hadoop 3.5.0 told them, cut to what is read and a bit more.
APP: dict[str, Any] = {
    "id": "application_1796139250311_0001",
    "user": "root",
    "name": "digits",
    "queue": "root.default",
    "state": "FINISHED",
    "finalStatus": "SUCCEEDED",
    "progress": 100.0,
    "trackingUrl": "http://host:8088/proxy/application_1796139250311_0001/",
    "diagnostics": "digits: succeeded",
    "applicationType": "skein",
    "applicationTags": "tfy,tfy:e76429e2-438b-4e6f-91f4-690ba5536886",
    "startedTime": 1796139281047,
    "finishedTime": 1796139350794,
}
YOUNG = {
    key: value
    for key, value in {**APP, "state": "NEW", "finalStatus": "UNDEFINED", "finishedTime": 0}.items()
    if key not in ("trackingUrl", "diagnostics", "applicationTags")
}
NOT_FOUND = (
    b'{"RemoteException":{"exception":"NotFoundException","message":"app with id: application_1_1 not found",'
    b'"javaClassName":"org.apache.hadoop.yarn.webapp.NotFoundException"}}'
)
BAD_ID = b'{"RemoteException":{"exception":"BadRequestException","message":"Invalid ApplicationId: x"}}'
BAD_STATE = b'{"RemoteException":{"exception":"BadRequestException","message":"Invalid application-state X"}}'


@pytest.mark.parametrize(
    ("properties", "addresses"),
    [
        ({}, ()),
        ({f"{RM}.webapp.address": "rm:9"}, ("http://rm:9",)),
        ({f"{RM}.hostname": "rm"}, ("http://rm:8088",)),
        ({f"{RM}.hostname": "0.0.0.0"}, ()),
        ({f"{RM}.webapp.address": "0.0.0.0:9", f"{RM}.hostname": "rm"}, ("http://rm:9",)),
        ({f"{RM}.webapp.address": "0.0.0.0:9"}, ()),
        (
            {"yarn.http.policy": "HTTPS_ONLY", f"{RM}.webapp.https.address": "rm:9", f"{RM}.hostname": "no"},
            ("https://rm:9",),
        ),
        ({"yarn.http.policy": "https_only", f"{RM}.hostname": "rm"}, ("https://rm:8090",)),
        (
            {**HA, f"{RM}.webapp.address.rm1": "a:1", f"{RM}.webapp.address.rm2": "b:2"},
            ("http://a:1", "http://b:2"),
        ),
        (
            {**HA, f"{RM}.hostname.rm1": "a", f"{RM}.webapp.address.rm2": "b:2"},
            ("http://a:8088", "http://b:2"),
        ),
        ({**HA, f"{RM}.hostname": "not-this-one"}, ()),
        ({**HA, f"{RM}.ha.enabled": "false", f"{RM}.hostname": "rm"}, ("http://rm:8088",)),
    ],
)
def test_the_addresses_are_those_of_the_configuration(
    properties: dict[str, str], addresses: tuple[str, ...]
) -> None:
    assert find_addresses(properties) == addresses


def test_an_application_is_read() -> None:
    assert parse_report(json.dumps({"app": APP}).encode()) == Application(
        id="application_1796139250311_0001",
        name="digits",
        user="root",
        queue="root.default",
        tags=("tfy", "tfy:e76429e2-438b-4e6f-91f4-690ba5536886"),
        state=ApplicationState.FINISHED,
        final_status="succeeded",
        diagnostics="digits: succeeded",
        tracking_url="http://host:8088/proxy/application_1796139250311_0001/",
        started=datetime(2026, 12, 1, 15, 34, 41, 47000, timezone.utc),
        finished=datetime(2026, 12, 1, 15, 35, 50, 794000, timezone.utc),
        type="skein",
    )
    young = parse_report(json.dumps({"app": YOUNG}).encode())
    assert (young.tags, young.finished, young.diagnostics, young.tracking_url) == ((), None, "", "")


@pytest.mark.parametrize("none", [b'{"apps":{}}', b'{"apps":null}', b"{}", b'{"apps":{"app":[]}}'])
def test_no_application_is_an_empty_list(none: bytes) -> None:
    assert parse_list(none) == ()


@pytest.mark.parametrize("body", [b"", b"<html>log in</html>", b'{"app":{"id":1}}', b'{"apps":{"app":[{}]}}'])
def test_what_is_no_answer_is_told(body: bytes) -> None:
    with pytest.raises(RestError, match="not the ResourceManager's answer"):
        parse_list(body) if b"apps" in body else parse_report(body)


def test_only_the_resource_managers_own_no_is_one() -> None:
    assert says_unknown(NOT_FOUND)
    assert says_unknown(BAD_ID)
    assert not says_unknown(BAD_STATE)
    assert not says_unknown(b"<h1>404 not found</h1>")


def test_an_unknown_application_is_none() -> None:
    with serve(lambda _path: Answer(404, NOT_FOUND)) as web:
        assert RmRest((web.address,), "me").report("application_1_1") is None


def test_who_asks_and_for_what_is_said() -> None:
    apps = json.dumps({"apps": {"app": [APP, {**APP, "id": "a", "applicationType": "SPARK"}]}}).encode()
    with serve(lambda _path: Answer(200, apps)) as web:
        found = RmRest((web.address,), "me & you").list_applications(Wanted(user="root", ended=False))
    # The answer is not as asked: nothing of it has to be, after a redirect.
    assert found == ()
    (asked,) = web.asked
    for part in ("applicationTags=tfy", "applicationTypes=skein", "user=root", "user.name=me+%26+you"):
        assert part in asked
    assert "states=NEW%2CNEW_SAVING%2CSUBMITTED%2CACCEPTED%2CRUNNING&" in asked


def test_a_standby_sends_to_the_active_one() -> None:
    report = json.dumps({"app": APP}).encode()
    with (
        serve(lambda _path: Answer(200, report)) as active,
        serve(lambda path: Answer(307, b"", (("Location", f"{active.address}{path}"),))) as standby,
    ):
        found = RmRest((standby.address, active.address), "me").report(APP["id"])
    assert found is not None
    assert (len(standby.asked), len(active.asked)) == (1, 1)


def test_the_next_one_is_asked_where_one_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = f"http://127.0.0.1:{closed.getsockname()[1]}"
    report = json.dumps({"app": APP}).encode()
    with serve(lambda _path: Answer(200, report)) as web:
        assert RmRest((down, web.address), "me").report(APP["id"]) is not None


def test_the_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serve(lambda _path: Answer(200, b"{}")) as web:
        assert RmRest((web.address,), "me").list_applications(Wanted()) == ()


def test_who_never_answers_is_not_waited_for() -> None:
    release = threading.Event()

    def keep_waiting(_path: str) -> Answer:
        release.wait(30)
        return Answer()

    with serve(keep_waiting) as web:
        try:
            with pytest.raises(RestError, match=web.address):
                RmRest((web.address,), "me", limit_s=0.2).list_applications(Wanted())
        finally:
            release.set()


class Skein:
    """The other door, where Skein's Java process stands behind it: it knows `application` only."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def list_applications(self, _wanted: Wanted) -> tuple[Application, ...]:
        return (self.application,)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(401, b"<html>Authentication required</html>"),
        Answer(404, b"<h1>404</h1>"),
        Answer(200, b"<html>log in</html>"),
        Answer(503, b"Can not find any active RM. Will retry in next 3 seconds."),
    ],
)
def test_where_rest_refuses_skein_is_asked(answer: Answer) -> None:
    skein: Any = Skein(parse_report(json.dumps({"app": APP}).encode()))
    with serve(lambda _path: answer) as web:
        yarn = QuickYarn(RmRest((web.address,), "me"), lambda: skein)
        assert yarn.list_applications(Wanted()) == (skein.application,)
        assert yarn.list_applications(Wanted()) == (skein.application,)
    assert len(web.asked) == 1
    assert QuickYarn(None, lambda: skein).list_applications(Wanted()) == (skein.application,)


def test_where_rest_has_answered_no_java_is_started() -> None:
    answers = iter([Answer(200, b"{}"), Answer(503, b"")])

    def start() -> Any:
        raise AssertionError("started")

    with serve(lambda _path: next(answers)) as web:
        yarn = QuickYarn(RmRest((web.address,), "me"), start)
        assert yarn.list_applications(Wanted()) == ()
        with pytest.raises(RestError, match="503"):
            yarn.list_applications(Wanted())


@pytest.mark.cluster
def test_rest_and_skein_tell_the_same(cluster: LocalHadoop) -> None:
    rest = RmRest(find_addresses(read_properties(cluster.conf_dir)), "root")
    found = find_cluster(cluster.environ)
    with open_yarn(found, cluster.environ) as yarn:
        assert yarn.list_applications(Wanted()) == rest.list_applications(Wanted())
        for application_id in ("application_1_1", "application_x"):
            assert yarn.report(application_id) is rest.report(application_id) is None
        for application in rest.list_applications(Wanted()):
            assert yarn.report(application.id) == rest.report(application.id)
