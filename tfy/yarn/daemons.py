"""Starting one daemon of the local cluster, and telling why it ended."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfy.errors import UnreachableError
from tfy.yarn.cluster_shape import ClusterLayout, Daemon
from tfy.yarn.java import Java
from tfy.yarn.ports import is_free, port_owner

FORMAT_TIMEOUT_S = 60.0
# What a daemon gets of the user's environment, and containers of the NodeManager's.
PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
MAX_FAULTS = 3
MAX_FAULT_CHARS = 300
FAULT = re.compile(r"\b(ERROR|FATAL)\b|^Error|[\w.]+(Exception|Error): ")


@dataclass(frozen=True, slots=True)
class Launcher:
    """What all daemons are started with."""

    java: Java
    jars: tuple[Path, ...]
    layout: ClusterLayout
    environ: Mapping[str, str]

    def command(self, daemon: Daemon, *arguments: str) -> list[str]:
        """The command line of a daemon."""
        class_path = ":".join(map(str, (*daemon.class_path_head, *self.jars)))
        return [
            str(self.java.binary),
            f"-Dtfy.daemon={daemon.name}",
            f"-Dtfy.daemon.log={self.layout.log(daemon.name)}",
            f"-Dlog4j2.configurationFile={self.layout.log4j}",
            "-Djava.net.preferIPv4Stack=true",
            # Hadoop reaches into java.lang, which Java 17 closed.
            *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
            # Light: the whole cluster shares a few cores with the job. The first compiler alone starts
            # sooner; it is kept from the DataNode, which moves the data.
            *(f"-Xmx{daemon.heap_mib}m", "-XX:+UseSerialGC"),
            *(() if daemon.name == "datanode" else ("-XX:TieredStopAtLevel=1",)),
            *("-cp", class_path, daemon.main_class, *arguments),
        ]

    def environment(self) -> dict[str, str]:
        """The whole environment of a daemon."""
        kept = {name: self.environ[name] for name in PASSED_ON if name in self.environ}
        return {**kept, "JAVA_HOME": str(self.java.home), "HADOOP_CONF_DIR": str(self.layout.conf)}

    def start(self, daemon: Daemon) -> subprocess.Popen[bytes]:
        """Start a daemon in a session of its own: a Ctrl-C in the terminal is not for it."""
        self.layout.logs.mkdir(parents=True, exist_ok=True)
        with self.layout.out(daemon.name).open("wb") as out:
            return subprocess.Popen(
                self.command(daemon),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.layout.root,
                env=self.environment(),
                start_new_session=True,
            )

    def format_namenode(self, namenode: Daemon) -> None:
        """Make the NameNode's empty file system, where there is none yet."""
        if (self.layout.name_dir / "current" / "VERSION").exists():
            return
        # Without that file there is no file system, only what an interrupted format left.
        if self.layout.name_dir.exists():
            shutil.rmtree(self.layout.name_dir)
        self.layout.logs.mkdir(parents=True, exist_ok=True)
        with self.layout.out(namenode.name).open("wb") as out:
            try:
                code = subprocess.run(
                    self.command(namenode, "-format", "-nonInteractive"),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=self.environment(),
                    cwd=self.layout.root,
                    timeout=FORMAT_TIMEOUT_S,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired as error:
                raise daemon_error(
                    namenode, f"no format within {FORMAT_TIMEOUT_S:.0f} s", self.layout
                ) from error
        if code != 0:
            raise daemon_error(namenode, f"format ended with {exit_text(code)}", self.layout)


def check_ports(daemons: Sequence[Daemon], layout: ClusterLayout) -> None:
    """Refuse to start daemons whose kept ports others have taken."""
    for daemon in daemons:
        for label, port in daemon.ports:
            if not is_free(daemon.host, port):
                owner = port_owner(port) or "another process"
                raise UnreachableError(
                    f"{daemon.title} cannot start: its {label} port {daemon.host}:{port} is taken by {owner} "
                    f"(log: {layout.log(daemon.name)})",
                    hint="end that process, or remove the cluster with its data and ports: "
                    f"tfy cluster down && rm -r {layout.root}",
                )


def daemon_error(daemon: Daemon, what: str, layout: ClusterLayout) -> UnreachableError:
    """The error that names a daemon, the reason in its log, and the log."""
    reason = last_fault(daemon, layout)
    because = f": {reason}" if reason else ""
    return UnreachableError(f"{daemon.title}: {what}{because} (log: {layout.log(daemon.name)})")


def last_fault(daemon: Daemon, layout: ClusterLayout) -> str | None:
    """The last different lines about errors that a daemon wrote since its start, on one line."""
    # The log goes on over starts; what a daemon prints is as old as its start.
    for path in (layout.log(daemon.name), layout.out(daemon.name)):
        faults = [line.strip()[:MAX_FAULT_CHARS] for line in _since_start(path) if FAULT.search(line)]
        if faults:
            # The cause often comes before the line that gives up.
            return "; ".join(list(dict.fromkeys(faults))[-MAX_FAULTS:])
    return None


def _since_start(path: Path, limit_bytes: int = 1 << 20) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit_bytes))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    starts = [number for number, line in enumerate(lines) if "STARTUP_MSG: Starting " in line]
    return lines[starts[-1] :] if starts else lines


def exit_text(code: int) -> str:
    """How a process ended."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
