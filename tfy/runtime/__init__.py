"""The cluster side, and what a program that tfy started may ask of it: `current_job()`.

Importing this loads no TensorFlow, gRPC or Spark.
"""

from tfy.runtime.context import Job, current_job
from tfy.runtime.identity import Task

__all__ = ["Job", "Task", "current_job"]
