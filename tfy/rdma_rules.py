"""Whether RDMA can be used at all by a job: refused before anything is sent where it cannot. Pure.

In TensorFlow 2.21 only NCCL speaks RDMA: collectives between GPUs of different tasks. Everything else
(parameter servers, the collectives of CPUs, tf.data service) is gRPC over TCP; the RDMA transport that
once was in tensorflow/networking is gone.
"""

from __future__ import annotations

from tfy.contract import SIDE_TASKS
from tfy.spec import JobSpec

_HEAD = "rdma: required, but no transport of this job can use it: "
_HINT = "accepted: off or preferred, or "


def explain_rdma(spec: JobSpec) -> list[str]:
    """Why `rdma: required` cannot be kept, in one line; nothing where it can, or was not asked.

    Under `strategy: none` the program's own collectives are not known here: with GPUs in two tasks or
    more NCCL can use RDMA, so it is accepted, and NCCL is told to use nothing else.
    """
    if spec.rdma != "required":
        return []
    if spec.strategy == "parameter_server":
        return [
            f"{_HEAD}parameter_server moves tensors by gRPC over TCP, for which TensorFlow 2.21 has no RDMA; "
            f"{_HINT}strategy: multi_worker_mirrored with GPUs"
        ]
    having = [task for task in spec.tasks if task.container.gpus and task.type not in SIDE_TASKS]
    tasks = sum(task.instances for task in having)
    if tasks == 0:
        return [f"{_HEAD}only NCCL does, between GPUs, and no task asks for any; {_HINT}tasks.worker.gpus"]
    if tasks == 1:
        return [f"{_HEAD}only one task has GPUs, and they need no network; {_HINT}two such tasks or more"]
    return []
