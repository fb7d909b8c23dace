"""Hadoop's jars: nothing is taken that does not have the checksum of the table."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tfy.errors import UnreachableError
from tfy.yarn.jars import (
    DAEMON_JARS,
    HADOOP_VERSION,
    Jar,
    check_fetched,
    fetch_jars,
    ivy_command,
    jars_cache,
    pyspark_jars,
    require_hadoop_version,
)
from tfy.yarn.java import java_bin, read_java

CONTENT = b"a jar"
JAR = Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())


def test_cache_follows_xdg_and_home() -> None:
    assert jars_cache({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/tfy/jars")
    assert jars_cache({"HOME": "/h"}) == Path("/h/.cache/tfy/jars")


def test_intact_jar_is_not_fetched_again(tmp_path: Path) -> None:
    cache = tmp_path / "tfy" / "jars"
    cache.mkdir(parents=True)
    (cache / "thing-1.0.jar").write_bytes(CONTENT)
    no_java = tmp_path / "no-java"
    assert fetch_jars(no_java, {"XDG_CACHE_HOME": str(tmp_path)}, [JAR]) == (cache / "thing-1.0.jar",)


def test_wrong_checksum_is_refused_and_the_file_removed(tmp_path: Path) -> None:
    path = tmp_path / "thing-1.0.jar"
    path.write_bytes(b"another file")
    with pytest.raises(UnreachableError, match=r"thing-1\.0\.jar has SHA-256 .* not .* removed"):
        check_fetched(JAR, path, "")
    assert not path.exists()


def test_wrong_checksum_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    """A stand-in for Java that delivers a file, as a proxy's error page would come."""
    java = tmp_path / "java"
    # The last argument is Ivy's pattern, in the folder to fill.
    java.write_text('#!/bin/sh\nfor last; do :; done\necho page > "$(dirname "$last")/thing-1.0.jar"\n')
    java.chmod(0o755)
    with pytest.raises(UnreachableError, match="SHA-256"):
        fetch_jars(java, {"XDG_CACHE_HOME": str(tmp_path)}, [JAR])
    assert [path.name for path in (tmp_path / "tfy" / "jars").iterdir()] == [".lock"]


def test_what_ivy_complains_about_is_told(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho ':: connection refused'\nexit 1\n")
    java.chmod(0o755)
    with pytest.raises(UnreachableError, match=r"org\.example:thing:1\.0 .*connection refused") as caught:
        fetch_jars(java, {"XDG_CACHE_HOME": str(tmp_path)}, [JAR])
    assert "TFY_IVY_SETTINGS" in (caught.value.hint or "")


def test_ivy_gets_the_users_proxy_and_settings() -> None:
    environ = {"https_proxy": "http://proxy.site:3128", "TFY_IVY_SETTINGS": "/etc/ivy.xml"}
    command = ivy_command(Path("java"), environ, Path("/work"))
    assert command[1:3] == ["-Dhttps.proxyHost=proxy.site", "-Dhttps.proxyPort=3128"]
    assert command[command.index("-settings") + 1] == "/etc/ivy.xml"


def test_pyspark_has_the_clients_of_the_daemons_version() -> None:
    jars = pyspark_jars()
    require_hadoop_version(jars)
    assert f"hadoop-client-runtime-{HADOOP_VERSION}.jar" in [jar.name for jar in jars]
    with pytest.raises(UnreachableError, match=r"hadoop-client-api-3\.4\.2\.jar"):
        require_hadoop_version([Path("hadoop-client-api-3.4.2.jar")])


def test_missing_java_is_told_with_what_installs_it(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="PATH has no `java`") as caught:
        java_bin({"PATH": str(tmp_path)})
    assert "apt-get install openjdk-17" in (caught.value.hint or "")
    with pytest.raises(UnreachableError, match="JAVA_HOME is /nowhere"):
        java_bin({"JAVA_HOME": "/nowhere"})


def test_java_tells_its_home_and_old_java_is_refused(tmp_path: Path) -> None:
    java = read_java(os.environ)
    assert (java.home / "bin" / "java").exists()
    old = tmp_path / "java"
    old.write_text(
        "#!/bin/sh\necho '    java.home = /old' >&2\necho '    java.specification.version = 1.8' >&2\n"
    )
    old.chmod(0o755)
    with pytest.raises(UnreachableError, match="is Java 8; 17 or newer"):
        read_java({"PATH": str(tmp_path)})


@pytest.mark.cluster
def test_jars_of_the_table_are_fetched(cluster: object) -> None:
    """By then the cluster has them; a checksum that no longer fits would fail here."""
    paths = fetch_jars(java_bin(os.environ), os.environ)
    assert [path.name for path in paths] == [jar.file_name for jar in DAEMON_JARS]
