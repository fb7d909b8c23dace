"""Spark's settings for a job, and what is told of its failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plans import make_small_plan
from tfy.runtime.identity import ContainerIdentity
from tfy.runtime.spark import describe_spark_end, make_spark_settings, summarize_spark_failure

CONTAINER = ContainerIdentity(
    container_id="container_1",
    host="127.0.0.2",
    work_dir=Path("/work"),
    log_dir=Path("/logs"),
    application_id="application_1_1",
    appmaster="127.0.0.2:4000",
    hadoop_user="me",
)


def test_the_findings_are_in_the_settings() -> None:
    plan = make_small_plan(workers=3)
    settings = make_spark_settings(plan, CONTAINER)
    expected = {
        "spark.executor.instances": "3",
        "spark.task.cpus": settings["spark.executor.cores"],
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "512m",
        "spark.task.maxFailures": "1",
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.dynamicAllocation.enabled": "false",
        "spark.yarn.tags": f"tfy,tfy:{plan.submission_id}",
        "spark.yarn.queue": "default",
        "spark.yarn.stagingDir": f"{plan.job_dir}/spark",
        "spark.driver.host": "127.0.0.2",
        "spark.executorEnv.HADOOP_USER_NAME": "me",
    }
    assert {name: settings[name] for name in expected} == expected
    assert int(settings["spark.executor.maxNumFailures"]) > 100
    assert settings["spark.yarn.jars"].startswith("local:/")
    for never in ("spark.yarn.unmanagedAM.enabled", "spark.executor.pyspark.memory"):
        assert never not in settings


def test_credentials_travel_as_localized_files_only() -> None:
    plan = make_small_plan()
    settings = make_spark_settings(plan, CONTAINER)
    files = settings["spark.yarn.dist.files"].split(",")
    assert f"{plan.job_dir}/private/skein.crt#.skein.crt" in files
    assert f"{plan.job_dir}/private/skein.pem#.skein.pem" in files
    assert f"{plan.job_dir}/files/tfy.zip#tfy_code" in settings["spark.yarn.dist.archives"].split(",")
    others = {name: value for name, value in settings.items() if name != "spark.yarn.dist.files"}
    assert not any("skein.pem" in value or "PRIVATE KEY" in value for value in others.values())


LOST = (
    "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: Container killed "
    "by YARN for exceeding physical memory limits."
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "An error occurred while calling z:...\n: org.apache.spark.SparkException: Job aborted due to "
            "stage failure: Could not recover\n  File ...\ntfy.runtime.spark.NodeEndedError: worker:1: its "
            "node ended with exit status -9\n\tat org...",
            "worker:1: its node ended with exit status -9",
        ),
        (
            "Most recent failure reason: Stage failed because barrier task ResultTask(0, 1) finished "
            f"unsuccessfully.\n{LOST}\nDriver stacktrace:",
            LOST,
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Application application_1_2 failed\n\tat org",
            "org.apache.spark.SparkException: Application application_1_2 failed",
        ),
        ("something else\nmore", "something else"),
        ("", "the Spark application failed without a word"),
    ],
)
def test_the_telling_line_of_a_failure(text: str, told: str) -> None:
    assert summarize_spark_failure(text) == told


@pytest.mark.parametrize(
    ("diagnostics", "said"),
    [
        ("AM Container for attempt_1 exited with 10\nmore", "AM Container for attempt_1 exited with 10"),
        ("", "YARN"),
    ],
)
def test_an_end_before_all_executors_were_there_is_told(diagnostics: str, said: str) -> None:
    text = describe_spark_end(diagnostics)
    assert said in text
    assert summarize_spark_failure(text) == text
