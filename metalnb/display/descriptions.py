"""Render the description of a name: as text, and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from metalnb.msl.editor.name_description import Description

from .frame import framed
from .highlight import highlight

__all__ = ["bundle"]


def bundle(descriptions: Sequence[Description]) -> dict[str, str]:
    """Return the MIME bundle that shows the descriptions of a name."""
    return {"text/plain": "\n\n".join(map(str, descriptions)), "text/html": framed("".join(map(_html, descriptions)))}


def _html(description: Description) -> str:
    code = highlight("\n".join(description.signatures))
    summary = "".join(f"<div>{escape(line)}</div>" for line in description.summary.split("\n") if line)
    notes = "".join(f"<div><i>{escape(line)}</i></div>" for line in (description.letters, description.where) if line)
    return f'<div class="metalnb-notes"><pre class="metalnb-code">{code}</pre>{summary}{notes}</div>'
