"""Which Java to use."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfy.errors import UnreachableError

# What pyspark 4 and Hadoop 3.5 are compiled for.
MIN_JAVA = 17
INSTALL_JAVA = (
    "install Java 17 or newer: apt-get install openjdk-17-jre-headless (Debian, Ubuntu), "
    "dnf install java-17-openjdk-headless (Fedora, RHEL)"
)
VERSION_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation that has been asked for its version."""

    binary: Path
    home: Path
    version: int


def java_bin(environ: Mapping[str, str]) -> Path:
    """The `java` of JAVA_HOME, or else of PATH."""
    home = environ.get("JAVA_HOME")
    if home:
        binary = Path(home) / "bin" / "java"
        if not binary.is_file():
            raise UnreachableError(
                f"JAVA_HOME is {home}, but {binary} does not exist",
                hint=f"correct or unset JAVA_HOME, or {INSTALL_JAVA}",
            )
        return binary
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise UnreachableError("no Java: JAVA_HOME is not set and PATH has no `java`", hint=INSTALL_JAVA)
    return Path(found)


def read_java(environ: Mapping[str, str]) -> Java:
    """Ask the `java` to be used for its home and version; too old a one is refused."""
    binary = java_bin(environ)
    command = [str(binary), "-XshowSettings:properties", "-version"]
    try:
        # A `java` on PATH may be a wrapper script, so only Java itself knows its home.
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, env=dict(environ), check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnreachableError(f"{binary} does not run: {error}", hint=INSTALL_JAVA) from error
    home = _setting(answer.stderr, "java.home")
    version = int(_setting(answer.stderr, "java.specification.version").removeprefix("1.") or 0)
    if version < MIN_JAVA or not home:
        raise UnreachableError(
            f"{binary} is Java {version}; {MIN_JAVA} or newer is needed", hint=INSTALL_JAVA
        )
    return Java(binary, Path(home), version)


def _setting(text: str, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)} = (.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""
