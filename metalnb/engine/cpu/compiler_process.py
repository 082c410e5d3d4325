"""The process in which the device's compiler runs: started, asked, limited, and ended.

A module that crashes the compiler, hangs it or eats the machine's memory ends that process, and not the notebook. It is
started as a program of its own, not forked, with a socket for its only descriptor besides the one it prints to; it ends
when the other end is closed, however the notebook's process came to its end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from metalnb.msl.libclang.deep_stack import time_limit

from .loader import bindings

__all__ = ["OPTIONS", "BuildFailed", "CompilerProcess", "NoCompilerProcess", "options_for"]

_WORKER = Path(__file__).with_name("build_worker.py")
# Options of LLVM's for the device's compiler, each for faults that were seen (docs/handing-over.md):
# - Of a sum that goes along with a maximum it makes vector code, in which a register that should hold ones holds zeros.
# - A call in which lanes meet it writes once for each value that an argument has on some way to it.
# - Its vectoriser takes branches that were threaded or merged for others. With a threadgroup barrier they are merged
#   all the same: what takes a kernel apart at its barriers missed a reduction's last step where they were not.
# - Of a loop with a condition that does not change in it, it makes two, and then takes what each of them leaves for the
#   same in all threads. It may where threads take the same ways in all loops, which spares a long sum 3 % of its time.
# - What goes up from one SIMD-group to the next in even steps it moves out of their loop, and does not count it on
#   beside a branch that no thread takes, which is left there now.
# - Its vectoriser takes loops for others, too, whose condition was moved to their end, where lanes meet and leave them;
#   without that move, other loops with loads take up to nine times as long.
_LEFT_OUT = (
    "-disable-x86-scalar-to-vector -opt-disable=callsite-splitting,jump-threading,sycl-kernel-loop-strided-code-motion"
)
_ONE_LOOP, _AS_BRANCHED, _AS_LOOPED = ",simple-loop-unswitch", ",simplifycfg", ",loop-rotate"
OPTIONS = _LEFT_OUT + _ONE_LOOP + _AS_BRANCHED
_TAKES_OPTIONS = "CL_CONFIG_LLVM_OPTIONS"
_UNKNOWN = "Unknown command line argument"  # it ends the process of a compiler that does not have one of them

_SHOWN = 4000  # characters of what the compiler printed before it died


def options_for(*, barrier: bool, lanes_leave: bool, loops_alike: bool) -> str:
    """Return the options for a kernel.

    Parameters
    ----------
    barrier : bool
        It has a threadgroup barrier.
    lanes_leave, loops_alike : bool
        What `metalnb.engine.cpu.spirv.liveouts` tells of its loops.
    """
    chosen = ((_ONE_LOOP, not loops_alike), (_AS_BRANCHED, not barrier), (_AS_LOOPED, lanes_leave))
    return _LEFT_OUT + "".join(option for option, wanted in chosen if wanted)


class BuildFailed(Exception):
    """The device's compiler made no binary of a module.

    Attributes
    ----------
    reason : str
        All that it said.
    kind : {"refused", "crashed", "killed", "hung"}
        ``killed``: by somebody else, twice.
    """

    def __init__(self, reason: str, kind: Literal["refused", "crashed", "killed", "hung"]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class NoCompilerProcess(Exception):
    """The process cannot be started, or finds no device."""


class CompilerProcess:
    """The device's compiler, in a process that is started when it is first needed and again after it has died.

    Parameters
    ----------
    environment : mapping of str to str, optional
        Added to this process's own.
    command : sequence of str, optional
        What is started in place of the worker.
    options : str
        LLVM's; left out for good where the compiler does not know them.
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, command: tuple[str, ...] = (), *, options: str = OPTIONS,
    ) -> None:  # fmt: skip
        self.environment = dict(environment or {})
        self.command = command
        self.options = options
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        atexit.register(self._stop)  # not waiting for the lock of a thread that builds
        os.register_at_fork(after_in_child=self._forget)

    def start(self) -> None:
        """Start it ahead of the first build; say nothing when that fails, as the build will."""
        if self._lock.acquire(blocking=False):  # else a build is under way
            try:
                with contextlib.suppress(NoCompilerProcess):
                    self._started()
            finally:
                self._lock.release()

    def build(self, code: bytes, seconds: float | None = None) -> bytes:
        """Build a SPIR-V module; return the device's binary. Threads take turns.

        Parameters
        ----------
        code : bytes
        seconds : float, optional
            That it may take; by default as long as any compiler (`time_limit`).

        Raises
        ------
        BuildFailed
        NoCompilerProcess
        """
        with self._lock:
            again = True
            while True:
                worker = self._started()
                try:
                    return worker.build(code, time_limit() if seconds is None else seconds)
                except _Died as died:
                    self._stop()
                    if self.options and _UNKNOWN in died.told:
                        self.options = ""
                        continue
                    # What kills a process that had built others before, or comes from outside, need not be the module.
                    if again and (worker.builds or not worker.ready or died.status in _NOT_OURS):
                        again = False
                        continue
                    if not worker.ready:
                        raise NoCompilerProcess(died.told) from None
                    raise BuildFailed(died.told, "killed" if died.status in _NOT_OURS else "crashed") from None
                except BuildFailed as failed:
                    if failed.kind == "hung":
                        self._stop()
                    raise
                except BaseException:  # Ctrl-C: whatever it is doing is of no use any more
                    self._stop()
                    raise

    def close(self) -> None:
        """End the process; the next build starts another."""
        with self._lock:
            self._stop()

    def _started(self) -> _Worker:
        if self._worker is None:
            command, environment = _command()
            options = " ".join(filter(None, (os.environ.get(_TAKES_OPTIONS), self.options)))
            given = {**environment, **self.environment, **({_TAKES_OPTIONS: options} if options else {})}
            self._worker = _Worker(self.command or command, {**os.environ, **given})
        return self._worker

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def _forget(self) -> None:
        """In a fork: leave the process to the one that was forked."""
        self._lock = threading.Lock()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.leave()


_NOT_OURS = {0, -getattr(signal, "SIGKILL", 9)}  # it ended by itself, having waited for long; or somebody ended it


class _Died(Exception):
    """The process ended before it answered."""

    def __init__(self, status: int, printed: str) -> None:
        try:
            how = f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            how = f"ended with status {status}"
        self.status = status
        self.told = f"the compiler {how}" + (f": {printed}" if printed else "")


class _Worker:
    """One process, from its start to its end.

    Attributes
    ----------
    ready : bool
        It has said that it has a device.
    builds : int
        How many modules it has answered for.
    """

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.ready = False
        self.builds = 0
        with contextlib.ExitStack() as undone:
            try:
                self._printed = os.memfd_create("metalnb-compiler")
                undone.callback(os.close, self._printed)
                self._socket, its = socket.socketpair()
                undone.callback(self._socket.close)
                with its:
                    self._process = subprocess.Popen(
                        command, stdin=its.fileno(), stdout=self._printed, stderr=self._printed, env=environment,
                        cwd="/",
                        start_new_session=True,  # a terminal's Ctrl-C goes to all of a session
                    )  # fmt: skip
            except OSError as error:
                raise NoCompilerProcess(str(error)) from error
            undone.pop_all()

    def build(self, code: bytes, seconds: float) -> bytes:
        """Ask, and wait for the answer."""
        deadline = time.monotonic() + seconds
        try:
            if not self.ready:
                kind, body = self._reply(deadline)
                if kind == b"E":
                    raise NoCompilerProcess(body.decode(errors="replace"))
                self.ready = True
            os.ftruncate(self._printed, 0)
            os.lseek(self._printed, 0, os.SEEK_SET)
            self._socket.settimeout(seconds)
            self._socket.sendall(len(code).to_bytes(8, "little") + code)
            kind, body = self._reply(deadline)
        except TimeoutError:
            message = f"the device's compiler gave no answer in {seconds:g} s"
            raise BuildFailed(message, "hung") from None
        except (EOFError, OSError):
            status = self._process.wait()
            printed = os.pread(self._printed, 1 << 20, 0).decode(errors="replace")
            raise _Died(status, _reason(printed)) from None
        self.builds += 1
        if kind == b"R":
            raise BuildFailed(body.decode(errors="replace"), "refused")
        return body

    def _reply(self, deadline: float) -> tuple[bytes, bytes]:
        head = self._read(9, deadline)
        return head[:1], self._read(int.from_bytes(head[1:], "little"), deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts = []
        while count:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            part = self._socket.recv(min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def end(self) -> None:
        """End it now."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        os.close(self._printed)

    def leave(self) -> None:
        """Let go of it without ending it."""
        self._socket.close()
        os.close(self._printed)
        self._process.returncode = 0  # not this process's child: nothing is left running


def _reason(printed: str) -> str:
    """Return what a compiler printed before it died, without the stack that it dumps."""
    lines = []
    for line in printed.splitlines():
        if line.startswith(("PLEASE submit", "Stack dump")):
            break
        if line.strip():
            lines.append(line.rstrip())
    return "\n".join(lines)[-_SHOWN:]


def _command() -> tuple[tuple[str, ...], dict[str, str]]:
    found = bindings()
    if found is None or not sys.executable:
        message = "there is no Python, or no pyopencl, to start it with"
        raise NoCompilerProcess(message)
    library, environment = found
    return (sys.executable, "-I", "-S", str(_WORKER), str(library)), environment
