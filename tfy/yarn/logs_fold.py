"""Folding what TensorFlow and Spark write in every program's log, whatever the program. Pure.

A line is folded where this table knows it: its source file or logger, its level and its words. What
the table does not know is shown, and so is everything inside a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tfy.yarn.logs_model import LogLine

_START = "TensorFlow's start"
_DATA = "TensorFlow's notes on data"
_CLEANING = "TensorFlow's cleaning up"
_SPARK = "Spark's start"
# A session's options as protobuf prints them, with an empty line at the end; what a program prints may
# look alike, so by name.
_SESSION_OPTIONS = (
    r"\s*(?:device_count|gpu_options|pluggable_device_options|experimental|graph_options|rewrite_options) \{$"
    r"|\s*\}$|  key: \"[CGT]PU\"$|  value: \d+$|allow_soft_placement: true$"
    r"|  collective_group_leader: \"\S+\"$|$"
)

# TensorFlow's two forms: `I0000 00:00:1796140277.507010   16429 port.cc:153] …` and, without absl,
# `2026-12-01 15:51:17.507010: I tensorflow/core/util/port.cc:153] …`.
_TENSORFLOW = re.compile(
    r"(?:(?P<absl>[IWEF])\d{4} \d\d:\d\d:[\d.]+ +\d+ |\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: (?P<level>[IWEF]) )"
    r"(?:[^\s:]+/)?(?P<file>[\w.]+):\d+\] (?P<text>.*)"
)
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class Known:
    """Lines that are known: of a source file and a level of TensorFlow's (or of none), with these words.

    `then` are the lines that belong to such a line and follow it at once, up to an empty one.
    """

    family: str
    text: re.Pattern[str]
    file: str = ""
    levels: str = "I"
    then: re.Pattern[str] | None = None


def _known(family: str, text: str, file: str = "", levels: str = "I", then: str | None = None) -> Known:
    return Known(family, re.compile(text), file, levels, re.compile(then) if then else None)


TABLE: tuple[Known, ...] = (
    _known(_START, r"WARNING: All log messages before absl::InitializeLog\(\) is called are written to "),
    _known(_START, r"oneDNN custom operations are on\.", "port.cc"),
    _known(_START, r"This TensorFlow binary is optimized ", "cpu_feature_guard.cc"),
    _known(_START, r"To enable the following instructions: [\w ,]+ in other operations, rebuild TensorFlow"),
    _known(_START, r"Could not find cuda drivers on your machine, GPU will not be used", "cudart_stub.cc"),
    _known(_START, r"Unable to register cuFFT factory: ", "cuda_fft.cc", "E"),
    _known(_START, r"Unable to register cuDNN factory: ", "cuda_dnn.cc", "E"),
    _known(_START, r"Unable to register cuBLAS factory: ", "cuda_blas.cc", "E"),
    _known(_START, r"computation placer already registered\.", "computation_placer.cc", "W"),
    _known(_START, r"TF-TRT Warning: Could not find TensorRT", "py_utils.cc", "W"),
    _known(_START, r"MLIR V1 optimization pass is not enabled", "mlir_graph_optimization_pass.cc"),
    _known(_START, r"XLA service 0x\w+ initialized for platform Host", "service.cc"),
    _known(_START, r"Started server with target: grpc://", "grpc_server_lib.cc"),
    _known(_START, r"Initializing CoordinationService", "coordination_service.cc"),
    _known(_START, r"\S+ has connected to coordination service\.", "coordination_service.h"),
    _known(_START, r"\S+ has connected to coordination service\.", "coordination_service.cc"),
    _known(_START, r"Waiting for 0/\d+ tasks to connect\.", "coordination_service.cc"),
    _known(_START, r"Barrier\(WaitForAllTasks\S*\) has passed with status: OK", "coordination_service.cc"),
    _known(_START, r"Coordination agent has successfully connected\.", "coordination_service_agent.cc"),
    _known(_START, r"Creating (?:a)?sync eager service context with ", "eager_service_impl.cc"),
    _known(_START, r"SessionOptions: ", "eager_service_impl.cc", then=_SESSION_OPTIONS),
    _known(_DATA, r"TFRecordDataset `buffer_size` is unspecified, default to ", "tf_record_dataset_op.cc"),
    _known(
        _CLEANING,
        r"Ignoring error status when releasing multi-device function handle UNIMPLEMENTED: ",
        "kernel_and_device.cc",
    ),
    _known(_DATA, r"Memory patch applied: M_TRIM_THRESHOLD=", "generator_dataset_op.cc"),
    _known(_DATA, r"Input of GeneratorDatasetOp::Dataset will not be optimized ", "dataset.cc", "W"),
    _known(
        _DATA,
        r"Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
        "local_rendezvous.cc",
        "IW",
        then=r"\s+\[\[\{\{node ",
    ),
    _known(_SPARK, r"WARNING: Using incubator modules: jdk\.incubator\.vector$"),
    _known(_SPARK, r"Using Spark's default log4j profile: \S+$"),
    _known(_SPARK, r'Setting default log level to "WARN"\.$'),
    _known(_SPARK, r"To adjust logging level use sc\.setLogLevel\(newLevel\)\."),
    _known(_SPARK, r"\S+ \S+ WARN Utils: Your hostname, \S+ resolves to a loopback address: "),
    _known(_SPARK, r"\S+ \S+ WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address$"),
    _known(_SPARK, r"\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"),
    _known(_SPARK, r"\S+ \S+ py4j\.clientserver: Closing down clientserver connection$"),
)


# Almost every line is a program's own: two questions tell.
_WITHOUT_FILE = re.compile("|".join(f"(?:{entry.text.pattern})" for entry in TABLE if not entry.file))


def find_known(text: str) -> Known | None:
    """The entry that knows this line, or None."""
    found = _TENSORFLOW.match(text)
    if found is None and _WITHOUT_FILE.match(text) is None:
        return None
    file, level, said = "", "I", text
    if found is not None:
        file, level, said = found["file"], found["absl"] or found["level"], found["text"]
    return next(
        (entry for entry in TABLE if entry.file == file and level in entry.levels and entry.text.match(said)),
        None,
    )


class Folder:
    """Passes the lines of one log on, with one line in place of each run of known ones."""

    def __init__(self) -> None:
        self._held: list[LogLine] = []
        self._count = 0
        self._known: Known | None = None
        self._then: re.Pattern[str] | None = None
        self._in_traceback = False

    def push(self, line: LogLine) -> Iterator[LogLine]:
        """What can be shown once `line` has come."""
        known = self._recognise(line.line)
        if known is None:
            yield from self.flush()
            yield line
            return
        if self._known is not None and self._known.family != known.family:
            yield from self.flush()
        self._known = known
        self._then = known.then if line.line else None
        self._count += 1
        self._held = [line]

    def flush(self) -> Iterator[LogLine]:
        """How many lines were held back."""
        if self._known is not None:
            (last,) = self._held
            lines, them = ("line", "it") if self._count == 1 else ("lines", "them")
            text = f"… {self._count} {lines} of {self._known.family} (--system shows {them})"
            yield replace(last, line=text)
        self._known, self._then, self._count, self._held = None, None, 0, []

    def _recognise(self, text: str) -> Known | None:
        if self._in_traceback:
            # Its frames are indented; the first line that is not ends it.
            self._in_traceback = not text or text[0].isspace()
            return None
        if _TRACEBACK in text:
            self._in_traceback = True
            return None
        if self._known is not None and self._then is not None and self._then.match(text):
            return self._known
        return find_known(text)
