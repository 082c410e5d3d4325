"""The tree's prose has none of the words in ``tests/words.txt``, and the search finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from words import LIST, ROOT, files, found, words

KNOWN = words(LIST.read_text("utf-8"))
SAMPLE = "It is not read any\n{0}more, as a\n{0}rule, by what is no array.\n"


@pytest.mark.long  # `make lint` does the same; the tests below check the search on small files
def test_project_avoids_listed_words() -> None:
    assert [line for path in files() for line in found(path, KNOWN)] == []


def test_prose_files_are_checked() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {"README.md", "CHANGELOG.md", "docs/cpu.md", "metalnb/magics/session.py", "metalnb/engine/base.py"} <= names
    assert {"notebooks/01_first_kernel.ipynb", "metalnb/library_kernels/metal/sort.metal", "tests/words.py"} <= names
    assert {"Makefile", ".ci/run", ".github/workflows/linux.yml", "labextension/src/msl.js"} <= names


@pytest.mark.parametrize(
    ("name", "text", "first"),
    [
        ("a.md", "# A page\n\n" + SAMPLE.format(""), 3),
        ("a.py", '"""Summary.\n\n' + SAMPLE.format("") + '"""\n', 3),
        ("a.py", "x = 1\n\n# " + SAMPLE.format("# "), 3),
        ("a.py", "x = 1  # " + SAMPLE.format("# "), 1),
        ("a.metal", "int x;\n    // " + SAMPLE.format("    // "), 2),
        ("a.h", "int x;\n/* " + SAMPLE.format(" * ") + " */", 2),
        ("a.js", "let x;\n// " + SAMPLE.format("// "), 2),
        ("Makefile", "x:\n\n# " + SAMPLE.format("# "), 3),
        ("a.yml", "x: 1 # " + SAMPLE.format("# "), 1),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": [SAMPLE.format("")]}]}), 1),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1\n# " + SAMPLE.format("# ")]}]}), 2),
    ],
)  # fmt: skip
def test_a_word_is_found_at_its_line(name: str, text: str, first: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    rows = [line.split(":")[1:3] for line in found(path, KNOWN)]
    assert sorted(rows) == [
        [str(first), " “any more”"], [str(first + 1), " “as a rule”"],
        [str(first + 2), " “is no array”"], [str(first + 2), " “what is no”"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "The name `any more` is code.\n\n```\nas a rule\n```\n\nThere is no array. It is no longer read.\n"),
        ("a.py", "as_a_rule = 'kin'  # there is no number\n"),
        ("a.metal", "int any; more(as, a);\n"),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": ["any more"]}]})),
        ("a.yml", "any more: as#a rule\n"),
    ],
)
def test_code_and_right_uses_are_left_alone(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert list(found(path, KNOWN)) == []
