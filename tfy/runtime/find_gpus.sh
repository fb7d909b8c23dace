#!/bin/sh
# Spark on YARN runs this in an executor to be told its GPUs, or else does not ask YARN for any. It only
# counts them: which devices a task may use, the task's node finds out and holds (gpus.py). So this names
# as many as were asked for, and cannot fail: an executor that ends here would be started again and again,
# with a reason that only its own log has.
addresses=""
index=0
while [ "$index" -lt "${TFY_GPUS:-0}" ]; do
    addresses="$addresses${addresses:+, }\"$index\""
    index=$((index + 1))
done
echo "{\"name\": \"gpu\", \"addresses\": [$addresses]}"
