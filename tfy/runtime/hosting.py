"""Who hosts a job's tasks, as the driver needs them: the Skein application and the Spark application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tfy.runtime.rendezvous import Rendezvous, ServiceContainer


class Application(Rendezvous, Protocol):
    """What the driver needs of its Skein application besides the rendezvous."""

    def request_container(self, service: str, env: Mapping[str, str]) -> int:
        """Asks YARN for one more container of a service; its instance number."""

    def containers(self) -> tuple[ServiceContainer, ...]:
        """Every container of every service, ended ones too."""


class Executors(Protocol):
    """What the driver needs of the Spark application."""

    @property
    def application_id(self) -> str | None:
        """YARN's id of the Spark application, once there is one."""

    @property
    def granted(self) -> int:
        """How many executors' containers YARN has granted."""

    @property
    def executors(self) -> int:
        """How many executors have registered."""

    def start(self) -> None:
        """Begins."""

    def failure(self) -> str | None:
        """Why the Spark side failed, or None as long as it has not."""

    def stop(self, limit_s: float) -> None:
        """Ends the Spark application."""
