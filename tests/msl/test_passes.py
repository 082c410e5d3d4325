"""Each pass that edits a cell produces the table's golden result, alone and with the others."""

from __future__ import annotations

import re

import pytest

from metalnb.msl.rewrite.passes import PASSES, Pass
from metalnb.msl.rewrite.scan import scan
from metalnb.msl.text.bracket_tree import outline
from metalnb.msl.text.edits import Edit, EditedText


@pytest.mark.parametrize("made", PASSES, ids=[p.edits.__name__ for p in PASSES])
def test_a_pass_rewrites_its_golden_cell_exactly(made: Pass) -> None:
    found = made.edits(outline(made.cell))
    edits = [e if isinstance(e, Edit) else Edit(e.start, e.end, e.form.format("$refused")) for e in found]
    assert EditedText(made.cell, edits).text == made.edited
    assert re.sub(r"(\$refused)\w+", r"\1", scan(made.cell).edited.text) == made.edited


def test_every_section_is_the_specification_s() -> None:
    assert all(re.fullmatch(r"[1-6](\.\d+)*(, [1-6](\.\d+)*)*", p.section) for p in PASSES)
