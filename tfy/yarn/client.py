"""YARN, as the client sees it: one Skein driver process, typed reports, bounded calls.

Skein 0.8.2 starts its Java process itself, with `yarn classpath` from the PATH and the
caller's environment and certificate. Here the class path, the environment and the
credentials are given, so neither a `yarn` command nor a file in the user's home matters.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

import skein
from skein import proto

from tfy.channel import make_channel
from tfy.errors import UnreachableError
from tfy.states import ApplicationState, parse_application_state
from tfy.yarn.application import Application, NoAnswerError, Wanted, sort_applications
from tfy.yarn.capacity import NodeFacts
from tfy.yarn.credentials import Credentials

CALL_LIMIT_S = 30.0
# Submitting uploads files and waits for the ResourceManager to take the application.
SUBMIT_LIMIT_S = 120.0
_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 10.0
_JAVA_FLAGS = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
# Hadoop's own command `yarn application`.
_YARN_CLI = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaSettings:
    """How to start Skein's Java process."""

    java: str
    classpath: str
    conf_dir: Path
    environ: Mapping[str, str]
    log: Path


class _BoundedClient(skein.Client):  # type: ignore[misc]
    """Skein's client of its driver process, with a limit on every call."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        self.address = address
        self.security = skein.Security(cert_bytes=credentials.certificate, key_bytes=credentials.key)
        self._proc = None
        self._channel = make_channel(address, credentials.certificate, credentials.key)
        self._stub = proto.DriverStub(self._channel)

    def _call(self, method: str, req: Any, timeout: float | None = None) -> Any:
        limit = SUBMIT_LIMIT_S if method == "submit" else CALL_LIMIT_S
        return super()._call(method, req, timeout=limit if timeout is None else timeout)


class Yarn:
    """The applications of one cluster."""

    def __init__(self, client: skein.Client, settings: JavaSettings) -> None:
        self._client = client
        self._settings = settings

    def list_queues(self) -> tuple[str, ...]:
        """The names of the scheduler's queues."""
        with self._translating("list its queues"):
            return tuple(str(queue.name) for queue in self._client.get_all_queues())

    def list_nodes(self) -> tuple[NodeFacts, ...]:
        """The NodeManagers that the ResourceManager knows, whatever their state."""
        with self._translating("list its nodes"):
            return tuple(_parse_node(node) for node in self._client.get_nodes())

    def submit(self, spec: skein.ApplicationSpec) -> str:
        """Submits; YARN's application id."""
        with self._translating("submit the application"):
            return str(self._client.submit(spec))

    def report(self, application_id: str) -> Application | None:
        """The application, or None where YARN does not know it (any more)."""
        with self._translating(f"report on {application_id}"):
            try:
                return _parse_report(self._client.application_report(application_id))
            except ValueError as error:
                # Skein's `Unknown ApplicationId` and `Invalid ApplicationId`.
                if "ApplicationId" in str(error):
                    return None
                raise

    def list_applications(self, wanted: Wanted) -> tuple[Application, ...]:
        """Jobs' Skein applications, oldest first."""
        states = [
            state.value.upper()
            for state in ApplicationState
            if state is not ApplicationState.UNKNOWN and (wanted.ended or not state.final)
        ]
        with self._translating("list applications"):
            found = self._client.get_applications(states=states, user=wanted.user)
        applications = [_parse_report(report) for report in found]
        return sort_applications([found for found in applications if wanted.matches(found)])

    def kill(self, application_id: str) -> None:
        """Kills the application. One that has ended already is no error."""
        with self._translating(f"kill {application_id}"):
            self._client.kill_application(application_id)

    def kill_spark(self, application_id: str) -> None:
        """Kills a Spark application, which Skein would not; one that has ended already is no error."""
        settings = self._settings
        command = [settings.java, "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_JAVA_FLAGS]
        command += ["-cp", settings.classpath, _YARN_CLI, "application", "-kill", application_id]
        try:
            done = subprocess.run(
                command,
                env={**settings.environ, "HADOOP_CONF_DIR": str(settings.conf_dir)},
                capture_output=True,
                text=True,
                timeout=CALL_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"YARN does not answer; it was to kill {application_id}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
            raise UnreachableError(f"YARN refuses to kill {application_id}: {said[-1]}")

    @contextmanager
    def _translating(self, what: str) -> Iterator[None]:
        try:
            yield
        except (skein.exceptions.TimeoutError, skein.exceptions.ConnectionError) as error:
            said = _last_line(self._settings.log)
            raise NoAnswerError(
                f"YARN does not answer; it was to {what}" + (f" ({said})" if said else ""),
                hint=f"is the ResourceManager up that {self._settings.conf_dir} names?",
            ) from error
        except (skein.exceptions.SkeinError, ValueError) as error:
            reason = str(error).strip() or type(error).__name__
            raise UnreachableError(f"YARN refuses to {what}: {reason}") from error


@contextmanager
def connect(settings: JavaSettings, credentials: Credentials) -> Iterator[Yarn]:
    """Starts Skein's Java process and ends it again."""
    process, address = _start_java(settings, credentials)
    try:
        client = _BoundedClient(address, credentials)
        try:
            yield Yarn(client, settings)
        finally:
            client.close()
    finally:
        _stop_java(process)


def _start_java(settings: JavaSettings, credentials: Credentials) -> tuple[subprocess.Popen[bytes], str]:
    jar = Path(skein.__file__).parent / "java" / "skein.jar"
    with closing(socket.create_server(("127.0.0.1", 0), backlog=1)) as callback:
        env = {
            **settings.environ,
            "HADOOP_CONF_DIR": str(settings.conf_dir),
            "CLASSPATH": f"{jar}{os.pathsep}{settings.classpath}",
            "SKEIN_CERTIFICATE": credentials.certificate.decode(),
            "SKEIN_KEY": credentials.key.decode(),
            "SKEIN_CALLBACK_PORT": str(callback.getsockname()[1]),
        }
        command = [
            settings.java,
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *_JAVA_FLAGS,
            "-Dskein.log.level=INFO",
            "com.anaconda.skein.Driver",
            "--jar",
            str(jar),
        ]
        with settings.log.open("wb") as log:
            process = _spawn(command, env, log)
        try:
            port = _wait_for_port(callback, process, settings.log)
        except UnreachableError:
            _stop_java(process)
            raise
    return process, f"127.0.0.1:{port}"


def _spawn(command: list[str], env: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C in the terminal is for tfy alone. It ends with its standard input.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env, start_new_session=True
    )


def _wait_for_port(callback: socket.socket, process: subprocess.Popen[bytes], log: Path) -> int:
    waited = 0.0
    while waited < _START_LIMIT_S and process.poll() is None:
        readable, _, _ = select.select([callback], [], [], 0.5)
        waited += 0.5
        if readable:
            connection, _ = callback.accept()
            connection.settimeout(_START_LIMIT_S)
            with closing(connection), connection.makefile("rb") as stream:
                data = stream.read(4)
            if len(data) == 4:
                return int(struct.unpack("!i", data)[0])
            break
    raise UnreachableError(
        f"Skein's Java process did not start: {_last_line(log) or 'it said nothing'}",
        hint="it needs Java 17 and Hadoop's jars on its class path",
    )


def _stop_java(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_LIMIT_S)


def _last_line(log: Path) -> str:
    """The last line of the log that tells of an error, else the last line, else nothing."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or [""])[-1]


def _parse_report(report: skein.model.ApplicationReport) -> Application:
    return Application(
        id=report.id,
        name=report.name,
        user=report.user,
        queue=report.queue,
        tags=tuple(sorted(report.tags)),
        state=parse_application_state(str(report.state)),
        final_status=str(report.final_status).lower(),
        diagnostics=report.diagnostics or "",
        tracking_url=report.tracking_url or "",
        started=_aware(report.start_time),
        finished=_aware(report.finish_time),
    )


def _parse_node(node: skein.model.NodeReport) -> NodeFacts:
    total = node.total_resources
    return NodeFacts(
        host=str(node.host),
        web=str(node.http_address),
        # The default partition's name is empty.
        labels=tuple(sorted(label for label in node.labels if label)),
        state=str(node.state).lower(),
        memory_mib=int(total.memory),
        vcores=int(total.vcores),
        gpus=int(total.gpus),
    )


def _aware(time: datetime | None) -> datetime | None:
    """Skein's times are local ones that do not say so."""
    return None if time is None else time.astimezone(timezone.utc)
