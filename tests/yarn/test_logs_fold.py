"""What is folded, and what never is. The lines are TensorFlow 2.21's and Spark 4.3's own."""

from __future__ import annotations

import pytest

from tfy.yarn.logs_fold import TABLE, Folder, find_known
from tfy.yarn.logs_model import LogLine

ABSL = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
ONEDNN = (
    "I0000 00:00:1796140277.507010   16429 port.cc:153] oneDNN custom operations are on. You may see "
    "slightly different numerical results"
)
GUARD = (
    "I0000 00:00:1796140277.800250   16429 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to "
    "use available CPU instructions in performance-critical operations."
)
GUARD_OLD = (
    "2026-12-01 15:51:17.507010: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary "
    "is optimized to use available CPU instructions in performance-critical operations."
)
REBUILD = (
    "To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow with "
    "the appropriate compiler flags."
)
CUFFT = (
    "2026-12-01 15:51:17.507010: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to "
    "register cuFFT factory: Attempting to register factory for plugin cuFFT"
)
SERVER = (
    "I0000 00:00:1796139331.973938    6842 grpc_server_lib.cc:467] Started server with target: grpc://h:57121"
)
DATASET = (
    "W0000 00:00:1796140815.717959    4839 dataset.cc:997] Input of GeneratorDatasetOp::Dataset will not be "
    "optimized because the dataset does not implement the AsGraphDefInternal() method needed"
)
OPTIONS = """I0000 00:00:1796139332.731377    6999 eager_service_impl.cc:355] SessionOptions: goo.gle/debug
device_count {
  key: "CPU"
  value: 1
}
gpu_options {
  experimental {
  }
}
allow_soft_placement: true
experimental {
  collective_group_leader: "/job:worker/replica:0/task:0"
}""".splitlines()
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"
NATIVE = (
    "26/12/01 15:50:44 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform... "
    "using builtin-java classes where applicable"
)


def fold(*texts: str) -> list[str]:
    folder = Folder()
    lines = [
        shown
        for number, text in enumerate(texts)
        for shown in folder.push(LogLine(float(number), "worker:1", "worker-1.log", text))
    ]
    lines += folder.flush()
    assert [line.time for line in lines] == sorted(line.time or 0.0 for line in lines)
    return [line.line for line in lines]


def test_a_start_becomes_one_line() -> None:
    start = (ABSL, ONEDNN, GUARD, REBUILD, ABSL, ONEDNN, CUFFT, GUARD_OLD, SERVER, *OPTIONS)
    assert fold(*start, "hello") == [
        f"… {len(start)} lines of TensorFlow's start (--system shows them)",
        "hello",
    ]


def test_families_are_told_apart_and_one_line_alone_is_folded_too() -> None:
    assert fold(INCUBATOR, NATIVE, ABSL, ONEDNN, "a", DATASET, "b", GUARD) == [
        "… 2 lines of Spark's start (--system shows them)",
        "… 2 lines of TensorFlow's start (--system shows them)",
        "a",
        "… 1 line of TensorFlow's notes on data (--system shows it)",
        "b",
        "… 1 line of TensorFlow's start (--system shows it)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "}",
        "  value: 1",
        "experimental {",
        "WARNING:tensorflow:5 out of the last 5 calls triggered tf.function retracing",
        "I0000 00:00:1796140813.64748 5184 coordination_service.cc:502] Waiting for 1/2 tasks to connect.",
        # Known words from another file, or at another level.
        ONEDNN.replace("port.cc", "mine.cc"),
        ONEDNN.replace("I0000", "W0000"),
        GUARD_OLD.replace(": I ", ": E "),
        "E0000 00:00:1796140277.507010   16429 cuda_platform.cc:51] failed call to cuInit: UNKNOWN ERROR",
        "W0000 00:00:1796140277.507010   16429 local_rendezvous.cc:404] Local rendezvous is aborting with "
        "status: INVALID_ARGUMENT: Key: image. Can't parse serialized Example.",
        "26/12/01 15:50:44 ERROR YarnScheduler: Lost executor 1 on 127.0.0.2",
        "26/12/01 15:50:44 WARN Utils: Service 'sparkDriver' could not bind on port 4040.",
        "my oneDNN custom operations are on.",
    ],
)
def test_what_is_not_known_is_shown(text: str) -> None:
    assert find_known(text) is None
    assert fold(ABSL, ONEDNN, text, text) == [
        "… 2 lines of TensorFlow's start (--system shows them)",
        text,
        text,
    ]


def test_a_programs_own_lines_after_the_options_of_a_session_are_shown() -> None:
    assert fold(*OPTIONS, "loss: 0.5", "  accuracy: 0.9", "result {") == [
        f"… {len(OPTIONS)} lines of TensorFlow's start (--system shows them)",
        "loss: 0.5",
        "  accuracy: 0.9",
        "result {",
    ]


def test_the_empty_line_that_ends_a_sessions_options_is_theirs_and_no_other_is() -> None:
    folded = f"… {len(OPTIONS) + 1} lines of TensorFlow's start (--system shows them)"
    assert fold(*OPTIONS, "") == [folded]
    assert fold(*OPTIONS, "", "", "}") == [folded, "", "}"]
    assert fold(*OPTIONS, "", "}") == [folded, "}"]


def test_nothing_inside_a_traceback_is_folded() -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "train.py", line 1, in <module>',
        ABSL,
    ]
    # The first line that is not indented is the error, whatever it reads.
    assert fold(*traceback) == traceback
    ended = [
        "Traceback (most recent call last):",
        '  File "train.py", line 1',
        "",
        "    f()",
        "ValueError: x",
    ]
    assert fold(*ended, ABSL, ONEDNN)[-1] == "… 2 lines of TensorFlow's start (--system shows them)"


def test_warnings_and_errors_are_known_by_their_words_and_their_file() -> None:
    for entry in TABLE:
        if set(entry.levels) & set("WEF"):
            assert entry.file and len(entry.text.pattern) > 20, entry
