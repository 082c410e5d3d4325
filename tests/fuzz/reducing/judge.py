"""A child process that answers questions about programs, because a program may crash it or never end."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["DIED", "Judge"]

DIED = "died"


class Judge:
    """Answers one question after another in a child process, which is restarted if it crashes.

    Parameters
    ----------
    answer : callable
        Runs in the child.
    limit : float
        Seconds for each question.
    """

    def __init__(self, answer: Callable[[Any], Any], limit: float) -> None:
        self.answer = answer
        self.limit = limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.parent_end, child_end = context.Pipe()
        self.child = context.Process(target=_answer, args=(child_end, self.answer), daemon=True)
        self.child.start()
        child_end.close()

    def ask(self, question: Any) -> Any:
        """Return the answer, or `DIED` if the child crashed or took too long."""
        self.parent_end.send(question)
        try:
            if self.parent_end.poll(self.limit):
                return self.parent_end.recv()
        except EOFError:
            pass
        self.close()
        self._start()
        return DIED

    def close(self) -> None:
        """End the child."""
        self.child.kill()
        self.child.join()
        self.parent_end.close()


def _answer(connection: Connection, answer: Callable[[Any], Any]) -> None:
    faulthandler.disable()  # it would print each crash
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        connection.send(answer(connection.recv()))
