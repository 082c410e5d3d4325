"""Run libclang in a thread with a large stack and a time limit, and load its names so that threads can share them."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["on_a_deep_stack"]

T = TypeVar("T")

_LOCK = threading.Lock()
_STACK = 1 << (27 if sys.platform == "win32" else 28)  # bytes: of address space, on Windows of memory


@functools.cache
def _complete_names() -> None:
    """Fill the tables of kinds' names: they are filled on first use, and another thread could see one half full."""
    from clang import cindex

    for kinds in cindex.BaseEnumeration.__subclasses__():
        kinds._name_map = {kind: name for name, kind in vars(kinds).items() if isinstance(kind, kinds)}  # noqa: SLF001


def on_a_deep_stack(work: Callable[[], T], seconds: float) -> T:
    """Run in a thread with a large stack: a deep expression overflows the usual 8 MB and ends the process.

    A parser that does not return is abandoned: it cannot be stopped, and may run until the process ends.

    Raises
    ------
    TimeoutError
        If `work` has not returned after `seconds`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  (passed on)
            outcome.set_exception(error)

    with _LOCK:
        _complete_names()
        os.environ["LIBCLANG_NOTHREADS"] = "1"
        usual = threading.stack_size(_STACK)
        try:
            threading.Thread(target=run, name="metalnb-parse", daemon=True).start()
        finally:
            threading.stack_size(usual)
    return outcome.result(timeout=seconds)
