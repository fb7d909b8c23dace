"""Nothing of a container outlives its node: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tfy.runtime import proctree
from tfy.runtime.process import read_last_words, start_program, telling_line

# Forks, double-forks and calls setsid: three processes that leave their parent behind.
ESCAPING = """
import os, time
open("started", "w").close()
if os.fork() == 0:
    time.sleep(600)
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 100)
        time.sleep(600)
    os._exit(0)
open("escaped", "w").close()
time.sleep(600)
"""

NODE = """
import os, sys
from pathlib import Path
from tfy.runtime import proctree
from tfy.runtime.guard import start_guard
from tfy.runtime.process import start_program
proctree.die_with_parent()
proctree.adopt_orphans()
guard = start_guard(os.environ["CONTAINER_ID"])
program = start_program(
    [sys.executable, "program.py"], env=os.environ, work_dir=Path.cwd(), log=Path("program.log"),
    spared=frozenset({guard.pid}),
)
if sys.argv[1] == "stop":
    while not Path("escaped").exists():
        os.sched_yield()
    program.stop(0.2)
    guard.dismiss()
else:
    while True:
        os.wait()
"""


@pytest.fixture
def container_id() -> Iterator[str]:
    name = f"container_{uuid.uuid4().hex}"
    yield name
    for pid in proctree.list_of_container(name):
        proctree.send(pid, signal.SIGKILL)


def start_container(folder: Path, container_id: str, mode: str) -> subprocess.Popen[bytes]:
    """As a NodeManager does: a shell that leads a session of its own."""
    (folder / "program.py").write_text(ESCAPING)
    return subprocess.Popen(
        ["bash", "-c", f'"{sys.executable}" -c "$NODE" {mode}; exit $?'],
        cwd=folder,
        env={**os.environ, "CONTAINER_ID": container_id, "NODE": NODE, "PYTHONPATH": str(Path.cwd())},
        start_new_session=True,
    )


def count_left(container_id: str) -> int:
    return sum(proctree.is_running(pid) for pid in proctree.list_of_container(container_id))


def test_killed_process_group_leaves_nothing(tmp_path: Path, container_id: str) -> None:
    shell = start_container(tmp_path, container_id, "wait")
    wait_until((tmp_path / "escaped").exists, limit_s=30, what="the program escaped")
    assert count_left(container_id) >= 6
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait(10)
    wait_until(lambda: count_left(container_id) == 0, limit_s=10, what="all processes gone")


def test_killed_node_takes_its_program_but_not_its_host(tmp_path: Path, container_id: str) -> None:
    shell = start_container(tmp_path, container_id, "wait")
    wait_until((tmp_path / "escaped").exists, limit_s=30, what="the program escaped")
    node = proctree.list_descendants(shell.pid)[0]
    os.kill(node, signal.SIGKILL)
    assert shell.wait(10) == 128 + signal.SIGKILL
    wait_until(lambda: count_left(container_id) == 0, limit_s=10, what="all processes gone")


def test_stop_ends_descendants_and_guard(tmp_path: Path, container_id: str) -> None:
    shell = start_container(tmp_path, container_id, "stop")
    assert shell.wait(30) == 0
    assert count_left(container_id) == 0


def test_a_program_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from tfy.runtime.process import start_program
start_program(
    [sys.executable, "-c", "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"],
    env=os.environ, work_dir=Path.cwd(), log=Path("log"), spared=frozenset(),
)
while not Path("pid").exists() or not Path("pid").read_text():
    os.sched_yield()
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    program = int((tmp_path / "pid").read_text())
    wait_until(lambda: not proctree.is_running(program), limit_s=5, what="the program ended")


def test_stopping_begins_gently(tmp_path: Path) -> None:
    program = start_program(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env=os.environ,
        work_dir=tmp_path,
        log=tmp_path / "log",
        # The cluster of the tests runs below this process too.
        spared=frozenset(proctree.list_descendants(os.getpid())),
    )
    assert program.exit_code() is None
    assert program.stop(5.0) == -signal.SIGTERM


def test_orphans_of_a_running_program_leave_no_zombies(tmp_path: Path) -> None:
    """In a process of its own: a subreaper adopts whatever its tests leave behind."""
    script = f"""
import os, sys, time
from pathlib import Path
from tfy.runtime import proctree
from tfy.runtime.process import start_program
proctree.adopt_orphans()
program = start_program(
    [sys.executable, "-c", {ORPHANING!r}],
    env=os.environ, work_dir=Path.cwd(), log=Path("log"), spared=frozenset(),
)
while not Path("orphaned").exists():
    os.sched_yield()
limit = time.monotonic() + 20
while len(proctree.list_descendants(os.getpid())) > 1 and time.monotonic() < limit:
    program.reap_orphans()
left = proctree.list_descendants(os.getpid())
assert len(left) == 1, left
assert program.exit_code() is None
program.stop(1.0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


ORPHANING = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
open("orphaned", "w").close()
time.sleep(600)
"""

FIRST = "Traceback (most recent call last):\nKeyError: 1"
SECOND = "Traceback (most recent call last):\nValueError: 2"
DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", ""),
        ("one\ntwo\n", "one\ntwo"),
        (f"noise\n{FIRST}\n", FIRST),
        (f"{FIRST}{DURING}{SECOND}\n", f"{FIRST}{DURING}{SECOND}"),
        (f"{FIRST}\nretrying\n{SECOND}\n", SECOND),
    ],
)
def test_last_words(tmp_path: Path, log: str, expected: str) -> None:
    path = tmp_path / "log"
    path.write_text(log)
    assert read_last_words(path) == expected


def test_last_words_are_never_long(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("Traceback (most recent call last):\n  File\nValueError: " + "x" * 200_000 + "\n")
    words = read_last_words(path)
    assert words.startswith("Traceback (most recent call last):\n  File\nValueError: x")
    assert len(words) < 1000


def test_the_telling_line_is_the_exception_whatever_came_after() -> None:
    assert telling_line(f"{FIRST}{DURING}{SECOND}\nI1201 late noise") == "ValueError: 2"
    assert telling_line("one\ntwo") == "two"
    assert telling_line("") == ""


def test_last_words_hold_no_escape_sequences(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07\tend\n")
    assert read_last_words(path) == "red bell\tend"


def test_last_words_of_no_log(tmp_path: Path) -> None:
    assert read_last_words(tmp_path / "missing") == ""
