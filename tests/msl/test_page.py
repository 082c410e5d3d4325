"""The page of the language agrees with the tables and the last measurement, and omits nothing of the specification."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter

import pytest
from msl.functions import INTEGERS, REALS, bound
from msl.page import HERE, KINDS, MODES, PAGE, Measured, key, page, read
from msl.specification import CHAPTERS, uses

from metalnb.msl.language.attributes import INPUTS
from metalnb.msl.language.versions import SINCE

NAMES = [(chapter, name) for chapter in CHAPTERS for entry in chapter.entries if not entry.lack for name in entry.names]


@pytest.fixture(scope="module")
def measured() -> Measured:
    return read()


def test_the_page_is_up_to_date_with_the_tables_and_the_measurement(measured: Measured) -> None:
    assert PAGE.read_text() == page(measured), "update it: make docs ARGS=--again"


def test_every_name_is_shown_by_a_test_that_exists(measured: Measured) -> None:
    """The test is one of those of the name's chapter, and compares something."""
    assert set(measured.shown) == {key(chapter, name) for chapter, name in NAMES}
    for chapter, name in NAMES:
        test = measured.shown[key(chapter, name)]
        assert any(f"{test}::".startswith(f"tests/msl/{wanted}::") for wanted in chapter.tests), (name, test)
    for test in set(measured.shown.values()):
        file, _, function = test.partition("::")
        body = ast.parse((HERE.parent.parent / file).read_text()).body
        (found,) = (each for each in body if isinstance(each, ast.FunctionDef) and each.name == function)
        assert any(isinstance(node, ast.Assert) for node in ast.walk(found)) or re.search(
            r"(\.|\b)(check|assert)\w*\(", ast.unparse(found)
        ), test


def test_no_error_was_measured_beyond_its_bound(measured: Measured) -> None:
    assert set(measured.ulp) == {row.name for row in REALS}
    for row, kind, mode in itertools.product(REALS, KINDS, MODES):
        assert measured.ulp[row.name][f"{kind} {mode}"] <= bound(row, kind, mode) * (1 + 1e-6), (row.name, kind, mode)


def test_a_sample_is_no_worse_than_all_floats(measured: Measured) -> None:
    """Two thousand arguments of a function that rounds contain nearly a tie, and none worse than the worst of all."""
    assert measured.every_float
    for name, worst in measured.every_float.items():
        assert set(measured.ulp[name]) == {f"{kind} {mode}" for kind in KINDS for mode in MODES}
        assert min(measured.ulp[name].values()) > 0.49, name
        assert measured.ulp[name]["float precise"] <= worst * (1 + 1e-6), name


def test_tables_and_specification_have_the_same_functions() -> None:
    for section in ("6.2", "6.3", "6.4", "6.5"):
        tried = {row.name.split("'")[0] for row in (*REALS, *INTEGERS) if row.section == section}
        listed = {name for c, name in NAMES if c.section == section and c.kind == "function"}
        assert tried <= listed
        assert listed - tried <= {"all", "any", "not"}
    assert set(INPUTS) == {name for c, name in NAMES if c.section == "5.2.3.6"}


def test_section_lists_each_name_once() -> None:
    assert max(Counter(key(chapter, name) for chapter, name in NAMES).values()) == 1


def test_versions_agree_with_those_that_a_cell_is_checked_against() -> None:
    later = {name: entry.since for c in CHAPTERS for entry in c.entries if not entry.lack for name in entry.names
             if tuple(map(int, entry.since.split("."))) > (2, 3) and not name.startswith("__")}  # fmt: skip
    del later["atomic"]  # a name that cells use for other things
    del later["uint3 gid [[thread_position_in_grid]];"]  # not a name: test_inputs_at_program_scope_need_msl_3_1
    assert later == {name: ".".join(map(str, version)) for name, version in SINCE.items()}


@pytest.mark.parametrize(("kind", "text", "used"), [
    ("function", "y = exp (x);", True), ("function", "y = exp2(x);", False), ("function", "fast::exp(x)", True),
    ("word", "half3 v;", False), ("attribute", "uint i [[a, exp]]", True), ("attribute", "[[a]] exp", False),
])  # fmt: skip
def test_uses_are_distinguished_from_lookalikes(kind: str, text: str, used: bool) -> None:
    assert bool(uses(kind, "half" if kind == "word" else "exp").search(text)) == used
