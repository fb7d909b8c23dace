"""Bringing the local cluster's daemons up, and taking back what was started when one fails."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tfy.yarn.cluster_conf import conf_files
from tfy.yarn.cluster_health import fetch_missing, make_folders
from tfy.yarn.cluster_shape import Daemon, daemons_of
from tfy.yarn.cluster_state import ClusterState, save_state
from tfy.yarn.cluster_stop import Progress, stop_daemons
from tfy.yarn.daemons import Launcher, check_ports, daemon_error, exit_text
from tfy.yarn.ports import accepts
from tfy.yarn.processes import identify

POLL_S = 0.25


class Startup:
    """One `up`: starts what is dead, and waits until all of it works.

    It alone changes `state`, and keeps it on disk at each step, so that `down` finds every process
    even of an `up` that was killed.
    """

    def __init__(self, launcher: Launcher, state: ClusterState, progress: Progress, deadline: float) -> None:
        self.launcher = launcher
        self.layout = launcher.layout
        self.state = state
        self.progress = progress
        self.deadline = deadline
        self.daemons = {daemon.name: daemon for daemon in daemons_of(state.shape, self.layout)}
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.since_ms: dict[str, int] = {}

    def run(self, user: str, container_classpath: tuple[Path, ...]) -> tuple[str, ...]:
        """Start and wait; the names of the daemons started. On failure they are stopped again."""
        wanted = self._make_room()
        check_ports(wanted, self.layout)
        for path, text in conf_files(self.state.shape, self.layout, user, container_classpath).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        save_state(self.layout, self.state)
        with ExitStack() as undo:
            undo.callback(self._take_back)
            self._start_all(list(wanted))
            self._wait_ready()
            make_folders(self.state.shape, user)
            undo.pop_all()
        return tuple(self.children)

    def _make_room(self) -> list[Daemon]:
        """The daemons to start, after what the dead ones left has been ended."""
        alive = self.state.alive()
        wanted = {name for name in self.daemons if name not in alive}
        if "resourcemanager" in wanted:
            # A new ResourceManager knows nothing of the old one's containers: their nodes start anew too.
            wanted |= {name for name, daemon in self.daemons.items() if daemon.node}
        self.state = stop_daemons(self.state, wanted, self.layout, self.progress)
        return [daemon for name, daemon in self.daemons.items() if name in wanted]

    def _start_all(self, waiting: list[Daemon]) -> None:
        """Start each daemon once the one that it talks to accepts connections."""
        # The ResourceManager first: it starts while the NameNode's file system is made.
        waiting.sort(key=lambda daemon: daemon.name != "resourcemanager")
        while waiting:
            ready = [daemon for daemon in waiting if self._may_start(daemon)]
            for daemon in ready:
                self._start(daemon)
                waiting.remove(daemon)
            self._check_children()
            self._check_deadline({daemon.name: f"waits for {daemon.after}" for daemon in waiting})
            if not ready:
                time.sleep(POLL_S)

    def _may_start(self, daemon: Daemon) -> bool:
        if daemon.after is None:
            return True
        first = self.daemons[daemon.after]
        return accepts(first.host, first.ports[0][1])

    def _start(self, daemon: Daemon) -> None:
        if daemon.name == "namenode":
            self.launcher.format_namenode(daemon)
        self.progress(f"starting {daemon.title}")
        self.since_ms[daemon.name] = int(time.time() * 1000)
        child = self.launcher.start(daemon)
        self.children[daemon.name] = child
        process = identify(child.pid)
        # One that ended at once is found, with its exit code, by _check_children.
        if process is not None:
            self.state = self.state.with_process(daemon.name, process)
            save_state(self.layout, self.state)

    def _wait_ready(self) -> None:
        told: Mapping[str, str] = {}
        while missing := fetch_missing(self.state.shape, self.since_ms):
            self._check_children()
            self._check_deadline(missing)
            if missing != told:
                self.progress("waiting: " + self._who(missing))
                told = missing
            time.sleep(POLL_S)

    def _check_children(self) -> None:
        for name, child in self.children.items():
            code = child.poll()
            if code is not None:
                raise daemon_error(
                    self.daemons[name], f"ended with {exit_text(code)} while starting", self.layout
                )

    def _check_deadline(self, missing: Mapping[str, str]) -> None:
        if not missing or time.monotonic() < self.deadline:
            return
        first = self.daemons[next(iter(missing))]
        blamed = self.daemons[first.after] if first.after in missing and first.after else first
        raise daemon_error(blamed, f"not up in time; {self._who(missing)}", self.layout)

    def _who(self, missing: Mapping[str, str]) -> str:
        return ", ".join(f"{self.daemons[name].title} {what}" for name, what in missing.items())

    def _take_back(self) -> None:
        """Stop what this `up` started."""
        self.state = stop_daemons(self.state, self.children.keys(), self.layout, self.progress)
        save_state(self.layout, self.state)
        for child in self.children.values():
            child.poll()
