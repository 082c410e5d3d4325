"""Run commands from a small helper process, which reports the peak memory of each.

Linux counts the memory of a process that starts another as the other's, up to the call of ``exec``, so a large process
cannot measure its own children. Run as a script, this file is the small one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from typing import Any

__all__ = ["MeasuredProcess"]

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, of ru_maxrss


class MeasuredProcess:
    """Takes the place of `subprocess.run`.

    Attributes
    ----------
    peak : int
        Bytes: the most that a command has taken since this was set to 0.
    """

    def __init__(self) -> None:
        self.peak = 0
        command = [sys.executable, "-S", __file__]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, command: list[str], *, cwd: Any = None, **_: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a command and return its output; it may take as long as it likes."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        pickle.dump(([*map(str, command)], cwd and str(cwd)), self._server.stdin)
        self._server.stdin.flush()
        status, out, errors, peak = pickle.load(self._server.stdout)  # noqa: S301  (from this very file)
        self.peak = max(self.peak, peak)
        return subprocess.CompletedProcess(command, status, out, errors)

    def close(self) -> None:
        """End the process."""
        self._server.communicate()


def serve() -> None:
    """Run each command that is read from standard input."""
    while True:
        try:
            command, cwd = pickle.load(sys.stdin.buffer)  # noqa: S301  (from this very file)
        except EOFError:
            return
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            errors.seek(0)
            answer = (child.returncode, out.read(), errors.read(), usage.ru_maxrss * _UNIT)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
