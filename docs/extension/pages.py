"""Content that pages have only on the site: the front page's contents, pictures for both themes, the sources."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from gallery import gallery, pictured
from sphinx.application import Sphinx

from metalnb import library_kernels

_DOCS = Path(__file__).parent.parent
_LIBRARY = _DOCS.parent / "metalnb" / "library_kernels" / "metal"
_PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" width="(?P<width>\d+)"\s+alt="(?P<alt>[^"]*)">\s*</picture>'
)
_OP = re.compile(r"^\| `(\w+)(\([^`]*\))`", re.MULTILINE)
_FILE = re.compile(r"\[([\w.]+)\]\((?:\.\./metalnb/library_kernels/)?metal/\w+\.(?:metal|h)\)")


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Change a page's text before it is parsed."""
    if page.startswith("notebooks/"):
        source[0] = _notebook(source[0], page.rpartition("/")[2])
        return
    text = _PICTURE.sub(_both, source[0])
    if page == "docs/gallery":
        text += gallery(Path(app.srcdir))
    if page == app.config.root_doc:
        text += "\n" + (_DOCS / "contents.txt").read_text("utf-8")
    if page == "metalnb/library_kernels/README":
        text = _OP.sub(r"| {py:func}`\1\2 <metalnb.\1>`", text)
    if page == "docs/api/sources":
        text += "".join(map(_source, _files()))
    elif page != app.config.root_doc:
        text = _FILE.sub(lambda found: f"[{found[1]}](#metal-{nodes.make_id(found[1])})", text)
    source[0] = text


def _notebook(text: str, name: str) -> str:
    """Add a download link below the notebook's title, and join a cell's output, which is stored in pieces."""
    notebook = json.loads(text)
    title, *rest = "".join(notebook["cells"][0]["source"]).split("\n")
    offer = f"This page is a notebook, to be run and changed: {{download}}`{name}.ipynb`."
    notebook["cells"][0]["source"] = "\n".join([title, "", offer, *rest])
    for cell in notebook["cells"]:
        outputs: list[dict[str, Any]] = []
        for output in cell.get("outputs", ()):
            stream = output.get("name")
            if stream and outputs and outputs[-1].get("name") == stream:
                outputs[-1]["text"] = "".join([*outputs[-1]["text"], *output["text"]])
            else:
                outputs.append(output)
        if outputs:
            cell["outputs"] = outputs
    for cell, _section, words in pictured(notebook):
        cell["metadata"].setdefault("mystnb", {}).setdefault("image", {})["alt"] = words
    return json.dumps(notebook)


def _both(match: re.Match[str]) -> str:
    """Write a picture once per theme: the reader's choice on the page overrides the browser's preference."""
    alt = " ".join(match["alt"].split())  # an option of a directive ends with its line
    return "\n".join(
        f"```{{image}} {match[theme]}\n:class: only-{theme}\n:width: {match['width']}\n:alt: {alt}\n```\n"
        for theme in ("light", "dark")
    )


def _files() -> list[str]:
    """Return the Metal files, beginning with those that the library recommends to read first."""
    first = re.findall(r"``(\w+\.(?:metal|h))``", library_kernels.__doc__ or "")
    rest = (p.name for pattern in ("*.metal", "*.h") for p in sorted(_LIBRARY.glob(pattern)))
    return list(dict.fromkeys([*first, *rest]))


def _source(name: str) -> str:
    label = f"(metal-{nodes.make_id(name)})="
    included = f"```{{literalinclude}} ../../metalnb/library_kernels/metal/{name}\n:language: metal\n```"
    return f"\n{label}\n## {name}\n\n{included}\n"


def name_front(app: Sphinx, error: Exception | None) -> None:
    """Write the front page under the name index.html, too."""
    if error is None and app.builder.format == "html":
        shutil.copy(app.builder.get_outfilename(app.config.root_doc), Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Change pages as they are read, and rename the front page once all are written."""
    app.connect("source-read", read)
    app.connect("build-finished", name_front)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
