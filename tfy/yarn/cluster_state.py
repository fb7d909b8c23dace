"""Where the local cluster's state is kept, and what it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tfy.errors import SpecError, UnreachableError
from tfy.yarn.cluster_shape import ClusterLayout, ClusterShape, daemons_of
from tfy.yarn.processes import ProcessId, is_alive

ENV_CLUSTER_DIR = "TFY_CLUSTER_DIR"
"""The local cluster's folder, where it should not be the usual one."""

UP_COMMAND = "tfy cluster up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What `up` chose and started. `processes` maps a daemon's name to its process."""

    shape: ClusterShape
    processes: dict[str, ProcessId]

    def with_process(self, name: str, process: ProcessId) -> ClusterState:
        """The state after a daemon was started."""
        return ClusterState(shape=self.shape, processes={**self.processes, name: process})

    def without(self, names: frozenset[str]) -> ClusterState:
        """The state after some daemons were stopped."""
        kept = {name: process for name, process in self.processes.items() if name not in names}
        return ClusterState(shape=self.shape, processes=kept)

    def alive(self) -> frozenset[str]:
        """The names of the daemons that still run."""
        return frozenset(name for name, process in self.processes.items() if is_alive(process))

    def dead(self, layout: ClusterLayout) -> tuple[str, ...]:
        """The names of the daemons that should run and do not."""
        alive = self.alive()
        return tuple(daemon.name for daemon in daemons_of(self.shape, layout) if daemon.name not in alive)


def layout_of(environ: Mapping[str, str]) -> ClusterLayout:
    """The folder of the user's local cluster: TFY_CLUSTER_DIR, or below XDG_STATE_HOME or ~/.local/state."""
    chosen = environ.get(ENV_CLUSTER_DIR)
    if chosen:
        root = Path(chosen).absolute()
    else:
        home = Path(environ.get("HOME") or Path.home())
        root = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state").absolute() / "tfy" / "cluster"
    # Class paths split at colons, YARN's lists of folders at commas, its scripts at blanks.
    if re.search(r"[\s,:%$]", str(root)):
        raise SpecError(
            f"the local cluster's folder {root} holds a blank or one of , : % $",
            hint=f"choose another with {ENV_CLUSTER_DIR}",
        )
    return ClusterLayout(root)


def load_state(layout: ClusterLayout) -> ClusterState | None:
    """The kept state; None before the first `up`."""
    try:
        text = layout.state.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(text, type=ClusterState)
    except msgspec.DecodeError as error:
        raise UnreachableError(
            f"{layout.state} cannot be read: {error}",
            hint=f"remove {layout.root}, with the data in it, and type {UP_COMMAND}",
        ) from error


def save_state(layout: ClusterLayout, state: ClusterState) -> None:
    """Keep the state: written, then renamed."""
    new = layout.state.with_suffix(".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    new.replace(layout.state)
