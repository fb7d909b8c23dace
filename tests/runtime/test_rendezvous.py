"""The rendezvous: the fake and the real one pass the same tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
import skein

from tests.conftest import LocalHadoop
from tests.jobs.running import kill_by_rest
from tests.waiting import wait_until
from tfy.contract import from_json, to_json
from tfy.records import TaskRecord
from tfy.runtime.rendezvous import MemoryRendezvous, Rendezvous, RendezvousLostError, SkeinRendezvous
from tfy.states import ApplicationState, TaskState
from tfy.yarn.client import Yarn
from tfy.yarn.credentials import Credentials, make_credentials
from tfy.yarn.session import find_cluster, open_yarn


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return make_credentials(datetime.now(timezone.utc), 3600)


@pytest.fixture(scope="module")
def skein_application(cluster: LocalHadoop, credentials: Credentials) -> Iterator[SkeinRendezvous]:
    """An application master with nothing to do, and one service without instances."""
    spec = skein.ApplicationSpec(
        name="rendezvous",
        master=skein.Master(resources=skein.Resources(memory=512, vcores=1), script="sleep 300"),
        services={
            "ps": skein.Service(
                instances=0,
                resources=skein.Resources(memory=128, vcores=1),
                script='exit "$CODE"',
                allow_failures=True,
                max_restarts=0,
            )
        },
    )
    found = find_cluster(cluster.environ)
    with open_yarn(found, cluster.environ, credentials) as yarn:
        application_id = yarn.submit(spec)
        try:
            yield connect_when_up(yarn, application_id, credentials)
        finally:
            kill_by_rest(cluster, application_id)


def connect_when_up(yarn: Yarn, application_id: str, credentials: Credentials) -> SkeinRendezvous:
    def is_running() -> bool:
        application = yarn.report(application_id)
        return application is not None and application.state is ApplicationState.RUNNING

    wait_until(is_running, limit_s=60, what="Skein's application master runs")
    report = yarn._client.application_report(application_id)
    address = f"{report.host}:{report.port}"
    return SkeinRendezvous(address, application_id, credentials.certificate, credentials.key)


@pytest.fixture(params=["memory", pytest.param("skein", marks=pytest.mark.cluster)])
def rendezvous(request: pytest.FixtureRequest) -> Rendezvous:
    if request.param == "memory":
        return MemoryRendezvous()
    found: SkeinRendezvous = request.getfixturevalue("skein_application")
    return found


def test_a_key_that_nobody_set_is_none(rendezvous: Rendezvous) -> None:
    assert rendezvous.get("nobody/set/this") is None


def test_the_newest_value_wins(rendezvous: Rendezvous) -> None:
    rendezvous.put("newest", b"old")
    rendezvous.put("newest", b"\x00\xff")
    assert rendezvous.get("newest") == b"\x00\xff"


def test_items_are_those_of_the_prefix(rendezvous: Rendezvous) -> None:
    for key in ("some/1", "some/10", "other/1"):
        rendezvous.put(key, key.encode())
    assert dict(rendezvous.items("some/")) == {"some/1": b"some/1", "some/10": b"some/10"}
    assert dict(rendezvous.items("none/")) == {}


def test_records_travel_whole(rendezvous: Rendezvous) -> None:
    record = TaskRecord(task="worker:0", state=TaskState.FAILED, error="Zeile 1\nπ", port=1)
    rendezvous.put("task/worker:0", to_json(record))
    data = rendezvous.get("task/worker:0")
    assert data is not None
    assert from_json(data, TaskRecord) == record


def test_many_writers(rendezvous: Rendezvous) -> None:
    def write(number: int) -> None:
        rendezvous.put(f"many/{number}", str(number).encode())

    writers = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert len(rendezvous.items("many/")) == 16


@pytest.mark.cluster
def test_containers_are_asked_for_one_by_one_and_keep_their_number(
    skein_application: SkeinRendezvous,
) -> None:
    first = skein_application.request_container("ps", {"CODE": "0"})
    second = skein_application.request_container("ps", {"CODE": "3"})
    assert (first, second) == (0, 1)

    def states() -> list[str]:
        return [container.state for container in skein_application.containers()]

    wait_until(lambda: states() == ["succeeded", "failed"], limit_s=60, what="both containers ended")
    assert all(container.container_id for container in skein_application.containers())


def test_an_application_master_that_is_gone_is_told_at_once(credentials: Credentials) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
    lost = SkeinRendezvous(address, "application_1_1", credentials.certificate, credentials.key)
    with pytest.raises(RendezvousLostError, match=r"127\.0\.0\.1"):
        lost.get("cluster")
