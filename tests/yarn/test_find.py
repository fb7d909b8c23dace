"""Which job a name or an id means, and when that is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.views import BEGAN, make_view
from tfy.errors import EXIT_SPEC, SpecError
from tfy.states import ApplicationState
from tfy.units import format_time
from tfy.yarn.application import Application
from tfy.yarn.find import is_application_id, is_submission_id, make_unknown, pick_job

FIRST = "0d3d1c2e-0000-4000-8000-000000000001"
SECOND = "0d3d1c2e-0000-4000-8000-000000000002"
THIRD = "e3a7b0aa-0000-4000-8000-000000000003"


def make_job(number: int, name: str, submission_id: str, *, ended: bool) -> Application:
    state = ApplicationState.FINISHED if ended else ApplicationState.RUNNING
    return replace(
        make_view(state).application,
        id=f"application_1_{number}",
        name=name,
        tags=("tfy", f"tfy:{submission_id}"),
        started=BEGAN + timedelta(minutes=number),
    )


OLD = make_job(1, "digits", FIRST, ended=True)
NEW = make_job(2, "digits", SECOND, ended=True)
RUNNING = make_job(3, "digits", THIRD, ended=False)


@pytest.mark.parametrize(
    ("jobs", "target", "found"),
    [
        ([OLD, NEW], "digits", NEW),
        # One that runs, though another of the name was submitted after it.
        ([RUNNING, NEW], "digits", RUNNING),
        ([OLD, NEW, RUNNING], "e3a7b0aa", RUNNING),
        ([OLD, NEW, RUNNING], "E3A7B0AA-0000", RUNNING),
        ([OLD, NEW, RUNNING], FIRST, OLD),
        ([OLD, NEW, RUNNING], "e3a7b0a", None),
        ([OLD, NEW], "digit", None),
        ([], "digits", None),
        ([OLD], "application_1_1", None),
    ],
)
def test_which_job_is_meant(jobs: list[Application], target: str, found: Application | None) -> None:
    assert pick_job(target, jobs) is found


def test_a_name_wins_over_the_beginning_of_an_id() -> None:
    named = make_job(4, "e3a7b0aa", SECOND, ended=True)
    assert pick_job("e3a7b0aa", [named, RUNNING]) is named


def test_several_that_run_are_listed() -> None:
    other = make_job(5, "digits", FIRST, ended=False)
    with pytest.raises(SpecError) as refused:
        pick_job("digits", [RUNNING, NEW, other])
    assert refused.value.exit_status == EXIT_SPEC
    first, *lines = refused.value.message.splitlines()
    assert first == "2 jobs of the name digits are running; say which by an id:"
    assert lines == [
        f"  application_1_3  {THIRD}  running  since {format_time(BEGAN + timedelta(minutes=3))}",
        f"  application_1_5  {FIRST}  running  since {format_time(BEGAN + timedelta(minutes=5))}",
    ]


def test_a_beginning_that_several_ids_have_is_refused() -> None:
    with pytest.raises(SpecError, match="several submission ids begin with 0d3d1c2e") as refused:
        pick_job("0d3d1c2e", [OLD, NEW])
    assert FIRST in refused.value.message
    assert SECOND in refused.value.message


def test_whole_ids_are_known() -> None:
    assert is_application_id("application_1796139250311_0001")
    assert not is_application_id("application_form")
    assert not is_application_id("application_1_1x")
    assert is_submission_id(FIRST)
    assert is_submission_id(FIRST.upper())
    assert not is_submission_id(FIRST[:-1])
    assert not is_submission_id("digits")


def test_a_slip_gets_a_guess() -> None:
    assert (make_unknown("digts", "me", [OLD]).hint or "").startswith("did you mean digits? ")
    assert "did you mean" not in (make_unknown("else", "me", [OLD]).hint or "")
