"""One worker of MultiWorkerMirroredStrategy that draws from shares of the input until they end.

    python input_mirrored.py RESULT.json SCENARIOS.json

A scenario gives the shares (as input.json has them), the batch, whether the remainder is dropped, how the
batches are drawn (`own`: by the program's own loop; `distributed`: by experimental_distribute_dataset), the
number of epochs and the most steps of each. Every step is a collective of all workers. The result has the
steps of each epoch and how many records this worker drew in it, or the error.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfy.contract import from_json
from tfy.errors import SpecError
from tfy.runtime.filesystem import register
from tfy.runtime.input import make_dataset
from tfy.shares import InputShares


def run(strategy: Any, scenario: dict[str, Any], number: int) -> dict[str, Any]:
    shares = from_json(json.dumps(scenario["shares"]).encode(), InputShares)
    try:
        dataset = make_dataset(
            shares,
            lambda records: records.batch(scenario["batch"], drop_remainder=scenario["remainder"]),
            set_number=number,
        )
    except SpecError as error:
        return {"error": error.message}
    if scenario["how"] == "distributed":
        dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function  # type: ignore[untyped-decorator]
    def step(batch: Any) -> Any:
        def count(local: Any) -> Any:
            context = tf.distribute.get_replica_context()
            own = tf.size(local)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own), own

        return strategy.run(count, args=(batch,))

    steps, own = [], []
    for _ in range(scenario["epochs"]):
        drawn = [step(batch) for batch in islice(dataset, scenario["most"])]
        steps.append([int(total) for total, _ in drawn])
        own.append(sum(int(size) for _, size in drawn))
    return {"steps": steps, "own": own}


def main() -> None:
    result, scenarios = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    register()
    found = [run(strategy, scenario, number) for number, scenario in enumerate(scenarios)]
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
