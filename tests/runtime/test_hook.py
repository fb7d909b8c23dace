"""The sitecustomize that gives an unchanged program hdfs://."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import tfy
from tests.conftest import Hdfs
from tfy.records import Progress
from tfy.runtime.filesystem import hook_path
from tfy.runtime.report import ReportReader

pytestmark = pytest.mark.timeout(120)

FAKE_TENSORFLOW = "print('tensorflow runs')\n"


def run(code: str, *path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program with `path` as its PYTHONPATH."""
    root = Path(tfy.__file__).parent.parent
    pythonpath = os.pathsep.join(map(str, [*path, root]))
    environ = {**os.environ, "PYTHONPATH": pythonpath, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        # `-c` puts the working directory first on the path.
        cwd=hook_path(),
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.cluster
def test_an_unchanged_program_has_hdfs(hdfs: Hdfs) -> None:
    code = f"import tensorflow as tf; print(tf.io.gfile.exists('{hdfs.uri}/'))"
    done = run(code, hook_path())
    assert done.stdout == "True\n", done.stderr


def test_tensorflow_looks_as_if_it_had_been_loaded_without_the_hook() -> None:
    code = "import tensorflow as tf; print(type(tf.__loader__).__name__, type(tf.__spec__.loader).__name__)"
    done = run(code, hook_path())
    assert done.stdout == "SourceFileLoader SourceFileLoader\n", done.stderr


def test_a_part_of_tensorflow_is_enough() -> None:
    code = "from tensorflow.python.framework import ops; import tensorflow as tf; tf.io.read_file('tfy://task/x')"
    assert "there is only tfy://task/index" in run(code, hook_path()).stderr


def test_a_program_without_tensorflow_loads_nothing() -> None:
    code = "import sys; print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'tfy')])"
    assert run(code, hook_path()).stdout == "[]\n"


def test_a_program_may_look_for_tensorflow_without_importing_it() -> None:
    code = (
        "import importlib.util, sys; spec = importlib.util.find_spec('tensorflow');"
        "print(spec.origin[-11:], spec.loader.is_package('tensorflow'), 'tfy' in sys.modules)"
    )
    done = run(code, hook_path())
    assert done.stdout == "__init__.py True False\n", done.stderr


def test_the_next_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; print('theirs', __name__); own = 1")
    done = run("import sitecustomize; print(sitecustomize.own)", hook_path(), tmp_path)
    assert done.stdout == "theirs sitecustomize\n1\n", done.stderr


def test_the_next_sitecustomize_keeps_its_own_errors(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("1 / 0")
    done = run("print('runs')", hook_path(), tmp_path)
    assert (done.returncode, done.stdout) == (0, "runs\n")
    assert "ZeroDivisionError" in done.stderr


def test_a_plugin_that_is_missing_is_an_import_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text(FAKE_TENSORFLOW)
    package = tmp_path / "tfy" / "runtime"
    package.mkdir(parents=True)
    (tmp_path / "tfy" / "__init__.py").touch()
    (package / "__init__.py").touch()
    for name in ("errors.py", "runtime/filesystem.py"):
        (tmp_path / "tfy" / name).write_text((Path(tfy.__file__).parent / name).read_text())
    done = run("import tensorflow", hook_path(), tmp_path)
    assert done.returncode == 1
    assert done.stdout == "tensorflow runs\n"
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: tfy's hdfs:// plugin for TensorFlow: "), last
    assert "is missing" in last and "pip install" in last


def test_a_tensorflow_that_fails_fails_as_ever(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise RuntimeError('their own')")
    done = run("import tensorflow", hook_path(), tmp_path)
    assert done.stderr.strip().splitlines()[-1] == "RuntimeError: their own"


def test_it_costs_next_to_nothing() -> None:
    def seconds(*path: Path) -> float:
        start = time.monotonic()
        assert run("pass", *path).returncode == 0
        return time.monotonic() - start

    pairs = [(seconds(hook_path()), seconds()) for _ in range(9)]
    assert statistics.median(with_hook - without for with_hook, without in pairs) < 0.02, pairs


def test_a_program_whose_exit_handler_raises_does_not_end_well() -> None:
    code = "import atexit; atexit.register(print, 'earlier'); atexit.register(lambda: 1 / 0); print('done')"
    done = run(code, hook_path())
    assert (done.returncode, done.stdout) == (1, "done\nearlier\n")
    assert "ZeroDivisionError" in done.stderr
    assert run("import atexit; atexit.register(print, 'fine')", hook_path()).returncode == 0


# --- counters of an unchanged program -----------------------------------------------------------
def run_task(tmp_path: Path, code: str, report: Path | None = None) -> Progress:
    """What a task's program has reported that reads ten records with `read()`."""
    head = f"""
        import os, sys, threading, time
        import tensorflow as tf
        with tf.io.TFRecordWriter("{tmp_path}/data") as writer:
            for index in range(10):
                writer.write(b"x")
        def read(epoch=0):
            name = f"tfy://records/0/{{epoch}}/1/0-170/{tmp_path}/data"
            assert len(list(tf.data.TFRecordDataset(name))) == 10
    """
    report = report or tmp_path / "report"
    program = textwrap.dedent(head) + textwrap.dedent(code)
    done = run(program, hook_path(), TFY_REPORT=str(report))
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return ReportReader(report).poll()


def records(progress: Progress) -> tuple[int, int, int]:
    assert progress.input is not None
    return progress.input.records, progress.input.epochs, progress.input.epoch_bytes


def test_an_unchanged_program_reports_what_it_read(tmp_path: Path) -> None:
    assert records(run_task(tmp_path, "read()")) == (10, 1, 170)
    lines = (tmp_path / "report").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_a_program_that_reads_nothing_reports_nothing(tmp_path: Path) -> None:
    assert run_task(tmp_path, "time.sleep(1.2)") == Progress()
    assert not (tmp_path / "report").exists()


def test_a_program_that_leaves_at_once_has_reported_what_was_half_a_second_ago(tmp_path: Path) -> None:
    code = """
        read()
        limit = time.monotonic() + 20
        while not os.path.exists(os.environ["TFY_REPORT"]) and time.monotonic() < limit:
            time.sleep(0.05)
        os._exit(0)
    """
    assert records(run_task(tmp_path, code)) == (10, 1, 170)


def test_a_forked_child_reports_for_itself(tmp_path: Path) -> None:
    code = """
        child = os.fork()
        read()
        if child:
            read(1)
            assert os.waitpid(child, 0)[1] == 0
        else:
            limit = time.monotonic() + 20
            told = f'"pid":{os.getpid()},'
            def report():
                name = os.environ["TFY_REPORT"]
                return open(name).read() if os.path.exists(name) else ""
            while told not in report():
                assert time.monotonic() < limit
                time.sleep(0.05)
            os._exit(0)
    """
    assert records(run_task(tmp_path, code)) == (30, 2, 170)


def test_threads_of_ours_are_none_that_a_program_meets(tmp_path: Path) -> None:
    code = """
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                thread.join()
        assert threading.active_count() == 1
        read()
    """
    assert records(run_task(tmp_path, code)) == (10, 1, 170)


@pytest.mark.parametrize("report", ["/dev/full", "/none/such/report"])
def test_a_report_that_cannot_be_written_is_no_concern_of_the_program(report: str) -> None:
    code = """
        import time
        import tensorflow as tf
        tf.io.write_file("tfy://count/steps", "1")
        time.sleep(1.2)
        print("fine")
    """
    done = run(textwrap.dedent(code), hook_path(), TFY_REPORT=report)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
