"""A Java process with Hadoop's own reader of aggregated logs, spoken to through Py4J.

Only Hadoop's classes read all that NodeManagers write (two file formats, compression, any file system).
Its command `yarn logs` does not start from the client's own jars: they lack a class that it names.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

from tfy.errors import UnreachableError
from tfy.yarn.hadoop import ENV_CONF_DIR, Hadoop, find_classpath
from tfy.yarn.java import java_bin

_START_LIMIT_S = 30.0
_STOP_LIMIT_S = 5.0
_POLL_S = 0.05
# Its port, then its secret; Java's own warnings come on standard output too.
_ADDRESS = re.compile(rb"^(\d+)\n(\S+)\n", re.MULTILINE)


@contextmanager
def open_gateway(
    hadoop: Hadoop, environ: Mapping[str, str], log: Path, *, limit_s: float = _START_LIMIT_S
) -> Iterator[JavaGateway]:
    """Starts the Java process, which ends with the block.

    It writes to `log`, and to the file beside it that ends in `.out`: files, which never make it wait.
    Raises `UnreachableError` where it has not told its address within `limit_s` seconds.
    """
    out = log.with_suffix(".out")
    command = [str(java_bin(environ)), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
    command += ["-cp", f"{find_classpath(hadoop, environ)}:{find_jar_path()}"]
    command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    with log.open("wb") as errors, out.open("wb") as sink:
        # A session of its own: Ctrl-C in the terminal is for tfy alone. It ends with its standard input.
        process = subprocess.Popen(
            command,
            env={**environ, ENV_CONF_DIR: str(hadoop.conf_dir)},
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=errors,
            start_new_session=True,
        )
    try:
        port, token = _wait_for_address(process, out, log, limit_s)
        parameters = GatewayParameters(address="127.0.0.1", port=port, auth_token=token, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield gateway
        finally:
            gateway.close()
    finally:
        _stop(process)


def _wait_for_address(
    process: subprocess.Popen[bytes], out: Path, log: Path, limit_s: float
) -> tuple[int, str]:
    """Its port and the secret that opens it."""
    deadline = time.monotonic() + limit_s
    while True:
        # What a process that has ended has written is all there will be.
        given_up = process.poll() is not None or time.monotonic() > deadline
        found = _ADDRESS.search(out.read_bytes())
        if found is not None:
            return int(found.group(1)), found.group(2).decode()
        if given_up:
            break
        time.sleep(_POLL_S)
    late = f" within {limit_s:g} s" if process.poll() is None else ""
    last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    raise UnreachableError(
        f"the Java process that reads aggregated logs did not start{late}: {last}",
        hint="it needs Java 17 and Hadoop's jars on its class path",
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_LIMIT_S)
