"""Finding the Hadoop cluster to use: the one of HADOOP_CONF_DIR, or else the local one.

HADOOP_CONF_DIR set      that cluster; the class path is `yarn classpath --glob` where PATH has
                         `yarn`, and otherwise that folder and pyspark's own jars
not set                  the local cluster (`tfy cluster up`), if it is up
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfy.errors import UnreachableError
from tfy.storage.hadoop_conf import read_properties
from tfy.yarn.cluster_state import UP_COMMAND, layout_of, load_state
from tfy.yarn.jars import pyspark_jars

ENV_CONF_DIR = "HADOOP_CONF_DIR"
CLASSPATH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hadoop:
    """The cluster to use, and what Java needs to talk to it."""

    conf_dir: Path
    yarn: str | None
    """The `yarn` command that knows the class path; None where pyspark's jars serve."""
    source: Literal["environment", "local"]
    properties: Mapping[str, str]
    """What the site files say, `${...}` expanded."""

    @property
    def default_fs(self) -> str:
        """`fs.defaultFS`, as `hdfs://host:port`; empty where the site files do not set it."""
        return self.properties.get("fs.defaultFS", "")


def find_hadoop(environ: Mapping[str, str]) -> Hadoop:
    """The cluster to use. Raises `UnreachableError` with what was looked for, and the command that helps."""
    chosen = environ.get(ENV_CONF_DIR)
    if chosen:
        return _of_environment(Path(chosen), environ)
    layout = layout_of(environ)
    state = load_state(layout)
    dead = state.dead(layout) if state else ()
    if state is None or dead:
        raise UnreachableError(_not_found(environ, layout.state, dead), hint=UP_COMMAND)
    return Hadoop(
        conf_dir=layout.conf,
        yarn=None,
        source="local",
        properties=read_properties(layout.conf),
    )


def _of_environment(conf_dir: Path, environ: Mapping[str, str]) -> Hadoop:
    if not conf_dir.is_dir():
        raise UnreachableError(
            f"{ENV_CONF_DIR} is {conf_dir}, which is no folder",
            hint=f"correct it, or unset it to use the local cluster ({UP_COMMAND})",
        )
    if not (conf_dir / "core-site.xml").is_file():
        raise UnreachableError(
            f"{ENV_CONF_DIR} is {conf_dir}, which has no core-site.xml",
            hint="it must name the folder with a cluster's core-site.xml, hdfs-site.xml and yarn-site.xml",
        )
    conf_dir = conf_dir.absolute()
    return Hadoop(
        conf_dir=conf_dir,
        yarn=shutil.which("yarn", path=environ.get("PATH")),
        source="environment",
        properties=read_properties(conf_dir),
    )


def find_classpath(hadoop: Hadoop, environ: Mapping[str, str]) -> str:
    """The class path for Java programs that talk to the cluster; `yarn` needs a second to tell it."""
    return _yarn_classpath(hadoop.yarn, environ) if hadoop.yarn else jars_classpath(hadoop.conf_dir)


def jars_classpath(conf_dir: Path) -> str:
    """The class path of a machine without a Hadoop installation: pyspark has Hadoop's client."""
    return ":".join(map(str, (conf_dir, *pyspark_jars())))


def _yarn_classpath(yarn: str, environ: Mapping[str, str]) -> str:
    command = [yarn, "classpath", "--glob"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=CLASSPATH_TIMEOUT_S,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnreachableError(f"`{yarn} classpath --glob` does not run: {error}") from error
    classpath = done.stdout.strip()
    if done.returncode != 0 or not classpath:
        said = (done.stderr.strip() or "nothing").splitlines()[-1]
        raise UnreachableError(
            f"`{yarn} classpath --glob` ended with exit code {done.returncode} and said: {said}",
            hint="correct the Hadoop installation, or take its `yarn` off PATH: pyspark's jars do as well",
        )
    return classpath


def _not_found(environ: Mapping[str, str], state: Path, dead: tuple[str, ...]) -> str:
    yarn = shutil.which("yarn", path=environ.get("PATH"))
    on_path = f"`yarn` is {yarn}, which alone names no cluster" if yarn else "PATH has no `yarn`"
    if not state.exists():
        local = f"there is no local cluster ({state} does not exist)"
    else:
        local = f"the local cluster of {state} is not up ({', '.join(dead)} not running)"
    return f"no Hadoop cluster: {ENV_CONF_DIR} is not set, {on_path}, and {local}"
