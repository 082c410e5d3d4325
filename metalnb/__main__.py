"""The command line: ``metalnb doctor``, or ``python -m metalnb doctor``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(prog="metalnb", description="Metal kernels in a notebook, on any machine.")
    parser.add_argument("--version", action="version", version=f"metalnb {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    doctor = commands.add_parser(
        "doctor",
        help="report what can run here and what is missing, and try it",
        description="Examine every engine and run a small kernel on it. The exit status is 1 if none works.",
    )
    doctor.add_argument("--json", action="store_true", help="write the findings as JSON")
    options = parser.parse_args(argv)

    try:
        from . import doctor as examination
    except ImportError as error:
        print(f"metalnb cannot start: {error}: pip install metalnb installs its dependencies", file=sys.stderr)
        return 1
    return examination.main(json=options.json)


if __name__ == "__main__":
    sys.exit(main())
