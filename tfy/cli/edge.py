"""The edge of the command line: the one place where errors become text and an exit status."""

from __future__ import annotations

import os
import select
import sys
import traceback
from collections.abc import Callable, Mapping

import click

from tfy.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, TfyError

ENV_DEBUG = "TFY_DEBUG"

_DEBUG_HINT = f"{ENV_DEBUG}=1 in the environment shows where"


class PipeError(Exception):
    """A verb met a broken pipe: standard output's, which is no fault, or another one."""


def run(verb: Callable[[], object], environ: Mapping[str, str]) -> int:
    """Run `verb`, show what it raises, and return the exit status.

    What `verb` returns is its exit status where that is a number. With TFY_DEBUG=1 in
    `environ`, an error is shown with its whole traceback.
    """
    debug = environ.get(ENV_DEBUG, "") not in ("", "0")
    try:
        result = verb()
        sys.stdout.flush()
    except (PipeError, BrokenPipeError) as error:
        if _has_reader():
            _show(error, f"tfy itself failed: {error}", _DEBUG_HINT, debug=debug)
            return EXIT_JOB_FAILED
        _forget_stdout()
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except TfyError as error:
        _show(error, error.message, error.hint, debug=debug)
        return error.exit_status
    except Exception as error:  # noqa: BLE001 - the edge: a fault of tfy's own still ends in one line
        _show(error, f"tfy itself failed: {type(error).__name__}: {error}", _DEBUG_HINT, debug=debug)
        return EXIT_JOB_FAILED
    return result if isinstance(result, int) else EXIT_OK


def _show(error: Exception, message: str, hint: str | None, *, debug: bool) -> None:
    # Loaded here, so that `--help` need not wait for it.
    from tfy.cli import render

    if debug:
        render.narrate("".join(traceback.format_exception(error)).rstrip())
    render.show_error(message, hint)


def _has_reader() -> bool:
    """Whether anybody still reads standard output. A failed flush says so once only, the pipe always."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _forget_stdout() -> None:
    """Whoever read standard output is gone: let the interpreter's last flush go nowhere, quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)
