"""Which GPUs of its host a task may use.

YARN counts GPUs. Only where it runs the LinuxContainerExecutor does it also choose the devices and
lock the others away; everywhere else a container sees every GPU of its host, and its NodeManager
answers that it assigned none. So the node chooses: of the devices that `nvidia-smi` shows it takes as
many as were asked for, each held under its own name until the program has ended. All tasks that tfy
starts on a host keep to that; who does not ask YARN for GPUs at all is beyond it.

Devices are named by UUID. An index means one thing to nvidia-smi, another to CUDA (fastest first) and
a third inside a container that sees a part of them; a UUID means the same everywhere.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from tfy.errors import StartError

ENV_VISIBLE = "CUDA_VISIBLE_DEVICES"
# CUDA stops at the first number that is no device; an empty variable is easily lost on the way.
NO_GPU = "-1"

_SMI = "nvidia-smi"
# Where NodeManagers look too.
_SMI_DIRS = ("/usr/bin", "/bin", "/usr/local/nvidia/bin")
_SMI_PATH_SETTING = "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables"
_ALLOWED_SETTING = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"
# Eight GPUs without persistence mode take nvidia-smi some ten seconds.
_SMI_LIMIT_S = 60.0
_ASK_LIMIT_S = 5.0
# A task that has just ended may hold its GPUs until its node is gone.
_HOLD_LIMIT_S = 60.0
_HOLD_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as nvidia-smi shows it: `/dev/nvidia<minor>`, and whether a process computes on it."""

    uuid: str
    minor: int | None
    busy: bool = False


@dataclass(frozen=True, slots=True)
class NodeManagerFacts:
    """What the host's NodeManager says: minors it assigned to this container (by the
    LinuxContainerExecutor alone), minors it may assign at all (None: every one), and its nvidia-smi."""

    assigned: frozenset[int] = frozenset()
    allowed: frozenset[int] | None = None
    smi: str = ""


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """The GPUs of one task, nobody else's until `release` or the end of this process."""

    uuids: tuple[str, ...]
    _holds: tuple[socket.socket, ...]

    def release(self) -> None:
        """Lets them go."""
        for hold in self._holds:
            hold.close()


@dataclass(frozen=True, slots=True)
class TaskGpus:
    """What a task's program gets: variables for its environment, and a sentence for the log."""

    env: Mapping[str, str]
    sentence: str
    held: HeldGpus | None = None

    def release(self) -> None:
        """Lets the GPUs go; the node calls it when nothing of the program is left."""
        if self.held is not None:
            self.held.release()


def take_gpus(
    asked: int, container_id: str, environ: Mapping[str, str], own_env: Mapping[str, str]
) -> TaskGpus:
    """The GPUs of the task in this container, `asked` of them.

    `own_env` is job.yaml's `env`: a CUDA_VISIBLE_DEVICES there is the user's word, and nothing is
    looked for. Raises `StartError` where the container has fewer GPUs than were asked for.
    """
    if ENV_VISIBLE in own_env:
        return TaskGpus({}, f"GPUs: {ENV_VISIBLE}={own_env[ENV_VISIBLE]} by job.yaml's env")
    if asked == 0:
        return TaskGpus(make_gpu_env(0, None, own_env), "GPUs: none asked, none visible")
    facts = ask_node_manager(container_id, environ)
    smi = find_smi(facts.smi, environ.get("PATH", ""))
    if smi is None:
        return TaskGpus({}, f"GPUs: {asked} asked; which ones cannot be told: no {_SMI} on this host")
    held = hold_gpus(asked, choose_gpus(asked, list_gpus(smi, environ), facts), _HOLD_LIMIT_S)
    return TaskGpus(make_gpu_env(asked, held.uuids, own_env), f"GPUs: {', '.join(held.uuids)}", held)


def make_gpu_env(asked: int, uuids: tuple[str, ...] | None, own_env: Mapping[str, str]) -> dict[str, str]:
    """The program's CUDA_VISIBLE_DEVICES: its own GPUs, or none at all where none was asked for.

    TensorFlow takes all memory of every GPU that it sees: a ps or an evaluator must see none. What
    job.yaml's `env` says stands; nothing is set where the devices are not known (`uuids` None).
    """
    if ENV_VISIBLE in own_env:
        return {}
    if asked == 0:
        return {ENV_VISIBLE: NO_GPU}
    return {} if uuids is None else {ENV_VISIBLE: ",".join(uuids)}


def choose_gpus(asked: int, visible: tuple[Gpu, ...], facts: NodeManagerFacts) -> tuple[Gpu, ...]:
    """The GPUs to take `asked` from, the best first; just as many where it is certain which.

    Raises `StartError` where fewer are visible.
    """
    assigned = tuple(gpu for gpu in visible if gpu.minor in facts.assigned)
    if len(assigned) == asked:
        return assigned
    usable = tuple(gpu for gpu in visible if facts.allowed is None or gpu.minor in facts.allowed)
    if len(usable) < asked:
        raise StartError(
            f"{asked} GPUs asked, this container sees {len(usable)} ({_SMI} shows {len(visible)})",
            hint="does this host's NodeManager offer more GPUs than the host has?",
        )
    # Somebody who did not ask YARN may compute on one.
    return tuple(sorted(usable, key=lambda gpu: gpu.busy))


def hold_gpus(asked: int, candidates: tuple[Gpu, ...], limit_s: float) -> HeldGpus:
    """Holds `asked` of the candidates, waiting up to `limit_s` seconds for others to let go.

    A hold is an abstract socket's name: all processes of the host share these names, and the kernel
    frees one with its process, however that ends. Raises `StartError` where too few become free.
    """
    deadline = time.monotonic() + limit_s
    while True:
        taken: list[tuple[Gpu, socket.socket]] = []
        for gpu in candidates:
            hold = _try_hold(gpu) if len(taken) < asked else None
            if hold is not None:
                taken.append((gpu, hold))
        if len(taken) == asked:
            return HeldGpus(tuple(gpu.uuid for gpu, _ in taken), tuple(hold for _, hold in taken))
        for _, hold in taken:
            # Two that each hold a part would wait for one another for ever.
            hold.close()
        if time.monotonic() > deadline:
            raise StartError(
                f"{asked} GPUs asked, {len(taken)} of this host's {len(candidates)} are free: "
                f"other tasks hold the rest for {limit_s:.0f} s by now"
            )
        time.sleep(_HOLD_POLL_S)


def _try_hold(gpu: Gpu) -> socket.socket | None:
    hold = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        hold.bind(f"\0tfy-gpu-{gpu.uuid}")
    except OSError:
        hold.close()
        return None
    return hold


def find_smi(configured: str, path: str) -> str | None:
    """nvidia-smi: the NodeManager's own (a program, or the folder with it), else where it usually is."""
    for found in (
        shutil.which(configured) if configured else None,
        shutil.which(_SMI, path=configured) if configured else None,
        shutil.which(_SMI, path=":".join((path, *_SMI_DIRS))),
    ):
        if found is not None:
            return found
    return None


def list_gpus(smi: str, environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The GPUs that this container sees. Raises `StartError` with nvidia-smi's own words where it fails."""
    try:
        done = subprocess.run(
            [smi, "-x", "-q"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SMI_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(f"the GPUs cannot be listed: {error}") from error
    if done.returncode != 0:
        said = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[0]
        raise StartError(f"the GPUs cannot be listed: {smi} ended with {done.returncode} and said: {said}")
    return parse_gpus(done.stdout)


def parse_gpus(xml: str) -> tuple[Gpu, ...]:
    """The devices in `nvidia-smi -x -q`. Raises `StartError` where it is something else."""
    try:
        return tuple(
            Gpu(
                uuid=_need_text(gpu, "uuid"),
                minor=_parse_minor(gpu.findtext("minor_number")),
                busy=gpu.find("processes/process_info") is not None,
            )
            for gpu in ElementTree.fromstring(xml).findall("gpu")
        )
    except (ElementTree.ParseError, ValueError) as error:
        raise StartError(
            f"the GPUs cannot be listed: {_SMI} does not print what it used to: {error}"
        ) from error


def _need_text(gpu: ElementTree.Element, name: str) -> str:
    text = (gpu.findtext(name) or "").strip()
    if not text:
        raise ValueError(f"a gpu without {name}")
    return text


def _parse_minor(text: str | None) -> int | None:
    """None for `N/A`, as under virtualization."""
    text = (text or "").strip()
    return int(text) if text.isdigit() else None


def ask_node_manager(container_id: str, environ: Mapping[str, str]) -> NodeManagerFacts:
    """What this host's NodeManager says; nothing where it is not to be asked (HTTPS, access closed)."""
    host, port = environ.get("NM_HOST"), environ.get("NM_HTTP_PORT")
    if not host or not port:
        return NodeManagerFacts()
    root = f"http://{host}:{port}"
    return NodeManagerFacts(
        assigned=parse_assigned(_fetch(f"{root}/ws/v1/node/resources/yarn.io%2Fgpu"), container_id),
        allowed=parse_allowed(parse_setting(_fetch(f"{root}/conf?name={_ALLOWED_SETTING}"))),
        smi=parse_setting(_fetch(f"{root}/conf?name={_SMI_PATH_SETTING}")),
    )


def parse_assigned(answer: bytes, container_id: str) -> frozenset[int]:
    """The minors assigned to a container, from the NodeManager's `resources/yarn.io%2Fgpu`.

    None without the LinuxContainerExecutor: then the answer is an error, or holds no devices.
    """
    try:
        found = json.loads(answer)
    except ValueError:
        return frozenset()
    # Hadoop 3.5 puts the record below its class's name, earlier ones do not.
    records = [found, *found.values()] if isinstance(found, dict) else []
    devices = [
        device
        for record in records
        if isinstance(record, dict) and isinstance(record.get("assignedGpuDevices"), list)
        for device in record["assignedGpuDevices"]
    ]
    return frozenset(
        int(device["minorNumber"])
        for device in devices
        if isinstance(device, dict) and "minorNumber" in device and container_id in json.dumps(device)
    )


def parse_setting(answer: bytes) -> str:
    """The value in a daemon's answer to `/conf?name=…`; empty where it has none."""
    try:
        return (ElementTree.fromstring(answer).findtext("property/value") or "").strip()
    except ElementTree.ParseError:
        return ""


def parse_allowed(setting: str) -> frozenset[int] | None:
    """The minors in `index:minor,index:minor`; None for `auto`, or whatever cannot be read."""
    pairs = [pair.strip().split(":") for pair in setting.split(",") if pair.strip()]
    if not pairs or not all(len(pair) == 2 and pair[1].isdigit() for pair in pairs):
        return None
    return frozenset(int(minor) for _, minor in pairs)


def _fetch(url: str) -> bytes:
    # Never by a proxy: a host speaks to itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_ASK_LIMIT_S) as answer:
            return bytes(answer.read())
    except (OSError, http.client.HTTPException):
        return b""
