"""Where the driver and the nodes meet: a small key-value store of current state.

`Rendezvous` is the protocol; Skein's key-value store is the real one, a dictionary the one for
tests. Calls are bounded. Whoever waits for a key asks again: Skein's own `wait` and its
subscriptions have no limit, and a call that fails is how a node learns that the application
master is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import skein
from skein import proto

from tfy.channel import make_channel
from tfy.contract import LOCAL_CERTIFICATE, LOCAL_KEY
from tfy.errors import UnreachableError
from tfy.runtime.identity import ContainerIdentity

CALL_LIMIT_S = 10.0


class RendezvousLostError(UnreachableError):
    """The rendezvous does not answer."""


class Rendezvous(Protocol):
    """A key-value store that all processes of one job share."""

    def put(self, key: str, value: bytes) -> None:
        """Sets a key, over an older value."""

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""

    def items(self, prefix: str) -> Mapping[str, bytes]:
        """All keys that begin with `prefix`, with their values."""


class MemoryRendezvous:
    """A rendezvous inside one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        """Sets a key, over an older value."""
        with self._lock:
            self._values[key] = value

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        with self._lock:
            return self._values.get(key)

    def items(self, prefix: str) -> Mapping[str, bytes]:
        """All keys that begin with `prefix`, with their values."""
        with self._lock:
            return {key: value for key, value in self._values.items() if key.startswith(prefix)}


class _BoundedClient(skein.ApplicationClient):  # type: ignore[misc]
    """Skein's client of an application master, with a limit on every call: Skein 0.8.2 sets none."""

    def __init__(self, address: str, app_id: str, certificate: bytes, key: bytes) -> None:
        self.address = address
        self.id = app_id
        self.security = skein.Security(cert_bytes=certificate, key_bytes=key)
        self._channel = make_channel(address, certificate, key)
        self._stub = proto.AppMasterStub(self._channel)

    def _call(self, method: str, req: Any, timeout: float | None = None) -> Any:
        try:
            return super()._call(method, req, timeout=CALL_LIMIT_S if timeout is None else timeout)
        except (skein.exceptions.ConnectionError, skein.exceptions.TimeoutError) as error:
            raise RendezvousLostError(f"Skein's application master at {self.address}: {error}") from error
        except skein.exceptions.ApplicationError as error:
            raise RendezvousLostError(f"Skein's application master refuses {method}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContainer:
    """A container of a Skein service. `state` is Skein's word in lower case."""

    service: str
    instance: int
    state: str
    container_id: str | None
    exit_message: str | None


class SkeinRendezvous:
    """The rendezvous of a job on YARN, and the driver's hold on its Skein application."""

    def __init__(self, address: str, application_id: str, certificate: bytes, key: bytes) -> None:
        self._client = _BoundedClient(address, application_id, certificate, key)

    def put(self, key: str, value: bytes) -> None:
        """Sets a key, over an older value."""
        self._client.kv.put(key, value)

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        value: bytes | None = self._client.kv.get(key)
        return value

    def items(self, prefix: str) -> Mapping[str, bytes]:
        """All keys that begin with `prefix`, with their values."""
        found: Mapping[str, bytes] = self._client.kv.get_prefix(prefix)
        return found

    def request_container(self, service: str, env: Mapping[str, str]) -> int:
        """Asks YARN for one more container of a service; its instance number."""
        return int(self._client.add_container(service, dict(env)).instance)

    def containers(self) -> tuple[ServiceContainer, ...]:
        """Every container of every service, ended ones too."""
        states = ["WAITING", "REQUESTED", "RUNNING", "SUCCEEDED", "FAILED", "KILLED"]
        return tuple(
            ServiceContainer(
                service=found.service_name,
                instance=found.instance,
                state=str(found.state).lower(),
                container_id=found.yarn_container_id or None,
                exit_message=found.exit_message or None,
            )
            for found in self._client.get_containers(states=states)
        )

    def shutdown(self, status: str, diagnostics: str) -> None:
        """Ends the application with YARN's final status and its diagnostics."""
        self._client.shutdown(status, diagnostics)


def connect(container: ContainerIdentity) -> SkeinRendezvous:
    """The rendezvous of the job that this container belongs to, with the job's own credentials."""
    return SkeinRendezvous(
        container.appmaster,
        container.application_id,
        (container.work_dir / LOCAL_CERTIFICATE).read_bytes(),
        (container.work_dir / LOCAL_KEY).read_bytes(),
    )
