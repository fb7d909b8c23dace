"""A chief that draws from the shares of the input on real workers and writes down what each of them read.

    python input_chief.py RESULT.json SCENARIO.json

A scenario gives the shares (as input.json has them), the batch, the least number of steps that each
worker makes, and whether worker:0 is slow. The result has steps and records by worker's index, or the error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfy.contract import from_json
from tfy.runtime import current_job
from tfy.runtime.input import make_dataset
from tfy.shares import InputShares

WORKERS = 2
STEPS_A_ROUND = 50


def read_index(batch: Any) -> Any:
    """Where this runs; the batch keeps it from being a constant."""
    name = tf.strings.join(["tfy://task/index?", tf.strings.as_string(tf.size(batch))])
    return tf.strings.to_number(tf.io.read_file(name), tf.int64), batch


@tf.function  # type: ignore[untyped-decorator]
def step(batches: Any, slow: Any) -> Any:
    index, batch = next(batches)
    if slow and index == 0:
        square = tf.random.uniform([500, 500])
        tf.debugging.assert_all_finite(tf.linalg.matmul(square, square @ square), "")
    return index, batch


def run(coordinator: Any, number: int, scenario: dict[str, Any]) -> dict[str, Any]:
    shares = from_json(json.dumps(scenario["shares"]).encode(), InputShares)
    dataset = make_dataset(
        shares, lambda records: records.batch(scenario["batch"]).map(read_index), set_number=number
    )
    batches = iter(coordinator.create_per_worker_dataset(dataset))
    slow = tf.constant(bool(scenario.get("slow")))
    steps: dict[str, int] = {}
    records: dict[str, list[str]] = {}
    # In rounds, since one worker may be done with all steps before the other has made its first.
    while len(steps) < WORKERS or min(steps.values()) < scenario["least_steps"]:
        drawn = [coordinator.schedule(step, args=(batches, slow)) for _ in range(STEPS_A_ROUND)]
        try:
            coordinator.join()
        except tf.errors.InvalidArgumentError as error:
            return {"error": error.message}
        for index, batch in coordinator.fetch(drawn):
            steps[str(index)] = steps.get(str(index), 0) + 1
            records.setdefault(str(index), []).extend(record.decode() for record in batch)
    return {"steps": steps, "records": records}


def main() -> None:
    result, scenarios = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    job = current_job()
    coordinator = tf.distribute.coordinator.ClusterCoordinator(job.strategy(timeout_s=60))
    found = [run(coordinator, number, scenario) for number, scenario in enumerate(scenarios)]
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
