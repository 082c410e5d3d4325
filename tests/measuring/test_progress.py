"""Progress of a measurement: a line on a terminal, a display in a notebook."""

from __future__ import annotations

import io

import pytest

from metalnb.timing import progress


def test_progress_line_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "_DELAY", -1.0)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(progress.sys, "stdout", stream)
        with progress.progress("counting") as report:
            report(0.25)
            report(0.251)
            report(0.5)
        text = stream.getvalue()
        assert text == ("\rcounting: 25 %\rcounting: 50 %\r" + " " * 14 + "\r" if shown else "")


def test_outputs_that_are_no_terminal_show_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    class Log:
        def write(self, text: str) -> None:
            raise AssertionError(text)

    monkeypatch.setattr(progress, "_DELAY", -1.0)
    for stream in (Log(), None):  # None is what a program without a console has
        monkeypatch.setattr(progress.sys, "stdout", stream)
        with progress.progress("counting") as report:
            report(0.25)


def test_progress_display_of_a_cell_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cell(io.StringIO):
        def set_parent(self) -> None: ...

    shown: list[tuple[str, str | None, int]] = []
    monkeypatch.setattr(progress, "_DELAY", -1.0)
    monkeypatch.setattr(progress.sys, "stdout", out := Cell())
    for kind in ("display", "update"):
        note = lambda _, data, raw, kind=kind: shown.append((kind, data.get("text/plain"), len(data)))  # noqa: E731
        monkeypatch.setattr(f"IPython.display.DisplayHandle.{kind}", note)
    with progress.progress("counting") as report:
        report(0.25)
        report(0.5)
    assert shown == [("display", "counting: 25 %", 2), ("update", "counting: 50 %", 2), ("update", None, 0)]
    assert out.getvalue() == ""
