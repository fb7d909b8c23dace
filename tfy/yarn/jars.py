"""The jars of Hadoop: pyspark's own, and the few that the local daemons need besides.

pyspark brings Hadoop's client. The daemons (NameNode, DataNode, ResourceManager, NodeManager)
are in `hadoop-client-minicluster`, which with Bouncy Castle is fetched once into the user's
cache by Ivy, itself one of pyspark's jars, and checked against the table below.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tfy.errors import InternalError, UnreachableError
from tfy.yarn.lock import file_lock

FETCH_TIMEOUT_S = 600.0
INSTALL_PYSPARK = "pip install 'tfy[runtime]'"
ENV_IVY_SETTINGS = "TFY_IVY_SETTINGS"
"""A file of Ivy settings for a site with a mirror of its own."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar by its Maven coordinates, and the checksum that it must have."""

    organisation: str
    module: str
    revision: str
    sha256: str
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """How the file is called, in repositories and in the cache."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.module}-{self.revision}{tail}.jar"


HADOOP_VERSION = "3.5.0"
# In the order of the class path.
DAEMON_JARS = (
    # Only for HDFS's web pages, which the next jar has without their HTML. It must come first.
    Jar(
        "org.apache.hadoop",
        "hadoop-hdfs",
        HADOOP_VERSION,
        "afcb2a1a357b531bde29197adfc9cac4ed8e1e46ee3cdb1385d0ecdd16a520b2",
        classifier="tests",
    ),
    Jar(
        "org.apache.hadoop",
        "hadoop-client-minicluster",
        HADOOP_VERSION,
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    # In the version of Hadoop 3.5.0's own build; the ResourceManager's web proxy needs it.
    Jar(
        "org.bouncycastle",
        "bcprov-jdk18on",
        "1.82",
        "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    ),
    Jar(
        "org.bouncycastle",
        "bcpkix-jdk18on",
        "1.82",
        "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    ),
    Jar(
        "org.bouncycastle",
        "bcutil-jdk18on",
        "1.82",
        "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
    ),
)

# What a container's Java needs and pyspark has not: Skein's application master filters its web pages by
# a class that the minicluster jar has too, but there for a servlet API that is renamed.
CONTAINER_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-yarn-server-web-proxy",
        HADOOP_VERSION,
        "3d0fbfedf518b811c8b47f6f92974a5ff35ace008522ab1a92ba34ee11274673",
    ),
)


def jars_cache(environ: Mapping[str, str]) -> Path:
    """Where fetched jars are kept: under XDG_CACHE_HOME, or ~/.cache."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "tfy" / "jars"


def pyspark_jars() -> tuple[Path, ...]:
    """The jars of the installed pyspark, sorted; pyspark itself is not imported."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UnreachableError(
            "pyspark is not installed, whose jars are Hadoop's client", hint=INSTALL_PYSPARK
        )
    folder = Path(spec.origin).parent / "jars"
    jars = tuple(sorted(folder.glob("*.jar")))
    if not jars:
        raise UnreachableError(f"pyspark has no jars in {folder}", hint=INSTALL_PYSPARK)
    return jars


def require_hadoop_version(jars: Sequence[Path]) -> None:
    """Refuse a pyspark whose Hadoop is not the one of the daemons: they share classes."""
    names = [jar.name for jar in jars]
    if f"hadoop-client-api-{HADOOP_VERSION}.jar" not in names:
        found = [name for name in names if name.startswith("hadoop-client-api-")]
        raise UnreachableError(
            f"the local cluster is Hadoop {HADOOP_VERSION}, pyspark has {', '.join(found) or 'no Hadoop'}",
            hint="pip install --upgrade 'pyspark>=4.3,<5'",
        )


def fetch_jars(
    java: Path, environ: Mapping[str, str], wanted: Sequence[Jar] = DAEMON_JARS
) -> tuple[Path, ...]:
    """The paths of `wanted` in the user's cache, fetched where they are missing or damaged."""
    cache = jars_cache(environ)
    paths = tuple(cache / jar.file_name for jar in wanted)
    with file_lock(cache / ".lock", timeout_s=FETCH_TIMEOUT_S, what="fetching jars"):
        missing = [jar for jar in wanted if not is_intact(cache / jar.file_name, jar)]
        if missing:
            # In the cache folder, so that the rename at the end stays within one file system.
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as name:
                work = Path(name)
                told = _run_ivy(java, environ, missing, work)
                for jar in missing:
                    check_fetched(jar, work / jar.file_name, told)
                    (work / jar.file_name).replace(cache / jar.file_name)
    return paths


def is_intact(path: Path, jar: Jar) -> bool:
    """Whether the file is there with the checksum of the table."""
    return path.is_file() and sha256_of(path) == jar.sha256


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def ivy_module(jars: Sequence[Jar]) -> str:
    """Ivy's description of what to fetch: the jars alone, without what they depend on."""
    dependencies = [
        f'<dependency org="{jar.organisation}" name="{jar.module}" rev="{jar.revision}" transitive="false">'
        f'<artifact name="{jar.module}" type="jar" ext="jar"'
        + (f' m:classifier="{jar.classifier}"' if jar.classifier else "")
        + "/></dependency>"
        for jar in jars
    ]
    return "\n".join(
        [
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            '<info organisation="tfy" module="jars"/>',
            "<dependencies>",
            *dependencies,
            "</dependencies>",
            "</ivy-module>",
        ]
    )


def ivy_command(java: Path, environ: Mapping[str, str], work: Path) -> list[str]:
    """The command that lets Ivy put what `ivy.xml` in the folder `work` describes there."""
    ivy = [path for path in pyspark_jars() if path.name.startswith("ivy-")]
    if not ivy:
        raise InternalError("pyspark's jars hold no ivy-*.jar")
    settings = environ.get(ENV_IVY_SETTINGS)
    return [
        str(java),
        *_proxy_flags(environ),
        *("-cp", str(ivy[0]), "org.apache.ivy.Main", "-warn"),
        *(("-settings", settings) if settings else ()),
        # A cache of its own: Ivy's usual one is not safe for two processes.
        *("-cache", str(work / "ivy"), "-ivy", str(work / "ivy.xml")),
        *("-retrieve", f"{work}/[artifact]-[revision](-[classifier]).[ext]"),
    ]


def _proxy_flags(environ: Mapping[str, str]) -> list[str]:
    """Java does not read `https_proxy` by itself."""
    proxy = environ.get("https_proxy") or environ.get("HTTPS_PROXY")
    if not proxy:
        return []
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return [f"-Dhttps.proxyHost={parts.hostname}", f"-Dhttps.proxyPort={parts.port or 80}"]


def _run_ivy(java: Path, environ: Mapping[str, str], jars: Sequence[Jar], work: Path) -> str:
    """Let Ivy fetch into `work`; what it said. Which jars came shows in the folder."""
    (work / "ivy.xml").write_text(ivy_module(jars))
    command = ivy_command(java, environ, work)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        names = ", ".join(jar.file_name for jar in jars)
        raise UnreachableError(
            f"{names} did not arrive within {FETCH_TIMEOUT_S:.0f} s", hint="is the network there?"
        ) from error
    return _told(done.stdout + done.stderr)


def check_fetched(jar: Jar, path: Path, told: str) -> None:
    """Refuse, and remove, what is not the jar of the table; `told` is what Ivy said."""
    if not path.is_file():
        raise UnreachableError(
            f"{jar.organisation}:{jar.module}:{jar.revision} was not fetched: {told or 'no reason told'}",
            hint=f"is the network there? Behind a mirror, name Ivy's settings file in {ENV_IVY_SETTINGS}",
        )
    found = sha256_of(path)
    if found != jar.sha256:
        path.unlink()
        raise UnreachableError(
            f"{jar.file_name} has SHA-256 {found}, not {jar.sha256}: it was removed",
            hint="a proxy or mirror delivers another file; try again, or from another network",
        )


def _told(output: str) -> str:
    """Ivy's complaints, without its dots and frames, on one line."""
    lines = (line.strip(" \t:.-") for line in output.splitlines())
    return "; ".join(line for line in lines if line)[-500:]
