"""Write ``src/words.json``, the words of Metal that the editor colors, from the package's own tables.

Run it as ``python labextension/words.py``; ``make labextension`` does, and then builds the extension.
"""

from __future__ import annotations

import json
from pathlib import Path

from metalnb.msl.language.attributes import ATTRIBUTES
from metalnb.msl.language.reference import entries

WORDS = Path(__file__).resolve().parent / "src" / "words.json"
_SECTIONS = {"4", "5.1"}  # address spaces, words for functions


def words() -> dict[str, list[str]]:
    """Return the words by their color."""
    return {
        "keywords": [n for e in entries() if e.kind == "word" and e.section in _SECTIONS for n in e.names],
        "types": [n for e in entries() if e.kind == "type" for n in e.names],
        "attributes": list(ATTRIBUTES),
    }


def text() -> str:
    """Return the file's text, one kind of words a line."""
    rows = (f"  {json.dumps(kind)}: {json.dumps(found)}" for kind, found in words().items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    WORDS.write_text(text(), encoding="utf-8")
