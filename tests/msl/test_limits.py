"""Code that would hang the compiler or end the process is refused with the reason."""

from __future__ import annotations

import pytest

import metalnb as mnb


def test_the_parser_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_COMPILE_TIMEOUT", "0.001")
    body = "\n".join(f"    y[{i}] = y[{i + 1}] * {i} + {i % 7};" for i in range(8000))
    with pytest.raises(mnb.CompileError, match="did not finish within 0 s") as caught:
        mnb.compile(f"kernel void k(device int* y) {{\n{body}\n}}")
    assert "METALNB_COMPILE_TIMEOUT" in caught.value.hint


def test_template_lists_are_not_nested_without_end() -> None:
    with pytest.raises(mnb.CompileError, match="nested more than 4096 deep"):
        mnb.compile("kernel void k(device int* y) { y[0] = " + "f<" * 60_000 + "int" + ">" * 60_000 + "(); }")


def test_deep_expressions_end_in_an_answer() -> None:
    with pytest.raises(mnb.CompileError, match="bracket nesting level"):
        mnb.compile("kernel void k(device int* y) { y[0] = " + "(" * 60_000 + "1" + ")" * 60_000 + "; }")
