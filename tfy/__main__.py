"""`python -m tfy` is `tfy`."""

from __future__ import annotations

from tfy.cli import main

if __name__ == "__main__":
    main(prog_name="tfy")
