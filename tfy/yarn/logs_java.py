"""A Java process with Hadoop's own reader of aggregated logs, spoken to through Py4J.

Only Hadoop's classes read all that NodeManagers write (two file formats, compression, any file system).
Its command `yarn logs` does not start from the client's own jars: they lack a class that it names.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

from tfy.errors import UnreachableError
from tfy.yarn.hadoop import ENV_CONF_DIR, Hadoop, find_classpath
from tfy.yarn.java import java_bin

_START_LIMIT_S = 30.0
_STOP_LIMIT_S = 5.0


@contextmanager
def open_gateway(hadoop: Hadoop, environ: Mapping[str, str], log: Path) -> Iterator[JavaGateway]:
    """Starts the Java process, which ends with the block; it writes to `log`."""
    command = [str(java_bin(environ)), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
    command += ["-cp", f"{find_classpath(hadoop, environ)}:{find_jar_path()}"]
    command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    with log.open("wb") as sink:
        # A session of its own: Ctrl-C in the terminal is for tfy alone. It ends with its standard input.
        process = subprocess.Popen(
            command,
            env={**environ, ENV_CONF_DIR: str(hadoop.conf_dir)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            start_new_session=True,
        )
    try:
        port, token = _read_address(process, log)
        parameters = GatewayParameters(address="127.0.0.1", port=port, auth_token=token, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield gateway
        finally:
            gateway.close()
    finally:
        _stop(process)


def _read_address(process: subprocess.Popen[bytes], log: Path) -> tuple[int, str]:
    """Its port and the secret that opens it: two lines, the first that it says."""
    assert process.stdout is not None
    lines: list[bytes] = []
    while len(lines) < 2:
        readable, _, _ = select.select([process.stdout], [], [], 0 if lines else _START_LIMIT_S)
        line = process.stdout.readline() if readable or lines else b""
        if not line:
            said = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            raise UnreachableError(
                f"the Java process that reads aggregated logs did not start: {said}",
                hint="it needs Java 17 and Hadoop's jars on its class path",
            )
        lines.append(line)
    return int(lines[0]), lines[1].decode().strip()


def _stop(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_LIMIT_S)
