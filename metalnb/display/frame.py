"""The frame around all of metalnb's HTML: its styles, its grays, and the lines at a card's foot."""

from __future__ import annotations

from html import escape

__all__ = ["framed", "mix", "nbytes", "note"]


def nbytes(count: int) -> str:
    """Format a number of bytes: ``1.2 MB``."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" or size >= 99.5 else f"{size:.1f} {units[0]}"


def note(label: str, html: str) -> str:
    """Return a line of a card's foot."""
    return f"<div><i>{escape(label)}:</i> {html}</div>"


def framed(body: str, css: str = "") -> str:
    """Return HTML in metalnb's frame, with the common styles and further rules ``css``."""
    return f'<div class="metalnb"><style scoped="">{_CSS}{css}</style>{body}</div>'


def _token(name: str, theirs: str, ours: str) -> str:
    """Return a CSS rule: JupyterLab's editor color if it exists, else one mixed from the text color."""
    mixed = f"color-mix(in srgb,{ours} 60%,currentColor)"
    return f".metalnb .{name}{{color:var(--jp-mirror-editor-{theirs}-color,{mixed})}}"


def mix(percent: int) -> str:
    """Return a gray that suits any page: a share of the text's own color."""
    return f"color-mix(in srgb,currentColor {percent}%,transparent)"


# The class is doubled to outweigh JupyterLab's own rules for tables and code; VS Code's are marked important.
_CSS = (
    f".metalnb{{border:1px solid {mix(18)};border-radius:6px;overflow:auto hidden;margin:4px 0;box-sizing:border-box;"
    "width:fit-content;min-width:min(36rem,100%);max-width:100%;font-size:13px;line-height:1.5}"
    f".metalnb .metalnb-head{{padding:7px 12px;background:{mix(5)};border-bottom:1px solid {mix(12)}}}"
    f".metalnb .metalnb-notes+.metalnb-head{{border-top:1px solid {mix(12)}}}"
    f".metalnb .metalnb-doc{{margin-left:8px;color:{mix(80)}}}"
    ".metalnb.metalnb code{background:none!important;padding:0!important;color:inherit;font-size:inherit;"
    "white-space:nowrap}"
    ".metalnb.metalnb .metalnb-head code{font-size:14px}"
    ".metalnb.metalnb table{border:0;border-collapse:collapse;table-layout:auto;margin:3px 0;width:100%;font-size:13px}"
    ".metalnb.metalnb tr{background:none!important}"
    ".metalnb.metalnb thead{border:0;background:none}"
    ".metalnb.metalnb :is(th,td){text-align:left;vertical-align:baseline;padding:4px 12px;border:0;background:none;"
    "max-width:none;white-space:nowrap}"
    f".metalnb.metalnb th{{font-weight:normal;color:{mix(70)}}}"
    ".metalnb.metalnb :is(td:last-child,.metalnb-long,.metalnb-long code){white-space:normal}"
    ".metalnb.metalnb :is(td:has(.metalnb-phrase,wbr),code:has(wbr)){white-space:normal}"
    ".metalnb .metalnb-phrase{white-space:nowrap}"
    "@media (max-width:900px){.metalnb.metalnb :is(th,td){padding:4px 6px}.metalnb.metalnb table{font-size:12px}"
    ".metalnb.metalnb :is(th,td):first-child{padding-left:12px}}"
    f".metalnb.metalnb tbody td{{border-top:1px solid {mix(8)}!important}}"
    # A page that removes styles shows this in place of a drawing.
    ".metalnb.metalnb .metalnb-spare{display:none!important}"
    f".metalnb .metalnb-notes{{padding:4px 12px 8px;border-top:1px solid {mix(8)}}}"
    f".metalnb .metalnb-notes i{{font-style:normal;color:{mix(70)}}}"
    f".metalnb details{{border-top:1px solid {mix(12)};padding:5px 12px}}"
    f".metalnb summary{{cursor:pointer;color:{mix(80)}}}"
    ".metalnb :is(summary,button):focus-visible{outline:2px solid var(--jp-brand-color1,#2f7fd6);outline-offset:1px}"
    # A click selects the entire text.
    ".metalnb.metalnb .metalnb-call{user-select:all;white-space:normal;overflow-wrap:anywhere}"
    ".metalnb.metalnb .metalnb-code{margin:6px 0;padding:0;overflow-x:auto;white-space:pre!important;line-height:1.45;"
    "background:none;word-break:normal!important;overflow-wrap:normal!important;"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)}"
    ".metalnb.metalnb>.metalnb-code{padding:0 12px}"
    + _token("k", "keyword", "#8a5cd0") + _token("t", "builtin", "#2f8a62") + _token("s", "string", "#c0504d")
    + _token("m", "number", "#2f8a62") + _token("c", "comment", "#808a94") + _token("p", "meta", "#7a8a2a")
    + _token("f", "def", "#3b7fd0")
)  # fmt: skip
