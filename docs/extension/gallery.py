"""The notebooks' pictures: a caption for each, and a page that shows each with the cell that draws it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["gallery", "pictured"]

_KINDS = {"image/png": "png", "image/jpeg": "jpg"}
_OBJECT = re.compile(r"<.+>\s*")  # the output of an object without a text form


def pictured(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield each cell that shows a picture, its section's title, and the picture in words, or else that title."""
    section = ""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            section = (re.findall(r"^##? +(.+)$", text, re.MULTILINE) or [section])[-1]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if _KINDS.keys() & data.keys():
                words = "".join(data.get("text/plain", ""))
                yield cell, section, f"Picture: {section}" if _OBJECT.fullmatch(words) else " ".join(words.split())
                break


def gallery(root: Path) -> str:
    """Write the last picture of each section below ``build/gallery``, and return the page's text from there on."""
    folder = root / "build" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for path in sorted(root.glob("notebooks/[0-9][0-9]_*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        title = re.sub(r"^# +", "", "".join(notebook["cells"][0]["source"]).split("\n")[0])
        last = {section: (cell, words) for cell, section, words in pictured(notebook)}
        parts += [f"\n## {title}\n\nFrom [{title}](../notebooks/{path.name}).\n"] if last else []
        for number, (section, (cell, words)) in enumerate(last.items(), 1):
            data = next(o["data"] for o in cell["outputs"] if _KINDS.keys() & o.get("data", {}).keys())
            kind = next(kind for kind in _KINDS if kind in data)
            name = f"{path.stem}_{number}.{_KINDS[kind]}"
            folder.joinpath(name).write_bytes(base64.b64decode("".join(data[kind])))
            picture = f"```{{image}} ../build/gallery/{name}\n:alt: {words}\n```"
            parts.append(f"\n### {section}\n\n{picture}\n\n```python\n{''.join(cell['source'])}\n```\n")
    return "\n".join(parts)
