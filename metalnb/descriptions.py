"""How a description of a name is shown: as text, and as HTML that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .display import framed
from .highlight import highlight
from .msl.editor.name_description import Description

__all__ = ["bundle"]


def bundle(found: Sequence[Description]) -> dict[str, str]:
    """Give the MIME bundle of what there is to say about a name."""
    return {"text/plain": "\n\n".join(map(str, found)), "text/html": framed("".join(map(_html, found)))}


def _html(description: Description) -> str:
    code = highlight("\n".join(description.signatures))
    told = "".join(f"<div>{escape(line)}</div>" for line in description.summary.split("\n") if line)
    notes = "".join(f"<div><i>{escape(line)}</i></div>" for line in (description.letters, description.where) if line)
    return f'<div class="metalnb-notes"><pre class="metalnb-code">{code}</pre>{told}{notes}</div>'
