"""docs/coming-from.md: every line with a Python prompt is executed and must print what the page shows."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"


def test_the_pages_examples_give_the_stated_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=options)
    page = doctest.DocTestParser().get_doctest(PAGE.read_text("utf-8"), {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    runner.run(page, out=report.append)
    assert not runner.failures, "".join(report)
    assert runner.tries > 40
