"""Starts a program that dies with the process that started it.

Run as a script: `python -I -S launch.py PARENT_PID COMMAND [ARG ...]`. PR_SET_PDEATHSIG outlives
exec, so the program itself is unchanged. Doing this between fork and exec of a node that has
threads would not be safe.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Ties this process to its parent, then becomes the command."""
    parent, command = int(argv[1]), argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(f"the process {parent} that started this one has ended")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv)
