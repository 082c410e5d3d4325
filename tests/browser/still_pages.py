"""The instruments' output in saved notebooks, and pages of hosts that show such notebooks: VS Code's and GitHub's.

A host is reproduced as far as it changes what is shown: its rules for tables, its content security policy, the way it
runs scripts, and what it removes.
"""

from __future__ import annotations

import functools
import json
from html import escape
from html.parser import HTMLParser
from typing import Any

import numpy as np

import metalnb as mnb

__all__ = ["SOURCE", "VSCODE", "sanitized", "stills", "vscode_page", "vscode_script"]

SOURCE = """\
#include <metal_stdlib>
using namespace metal;

/// y = a x + y
kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}
kernel void turned(device const float* a, device float* b, uint2 at [[thread_position_in_grid]],
                   uint2 size [[threads_per_grid]]) {
    b[at.x * size.y + at.y] = a[at.y * size.x + at.x];
}
kernel void race(device const float* x, device float* out, uint t [[thread_position_in_threadgroup]]) {
    threadgroup float tile[64];
    tile[t] = x[t];
    out[t] = tile[63 - t];
}
kernel void heat(device const float* a, device float* b, constant float& alpha, uint2 i [[thread_position_in_grid]],
                 uint2 n [[threads_per_grid]]) {
    float here = a[i.y * n.x + i.x], left = a[i.y * n.x + (i.x ? i.x - 1 : 0)];
    b[i.y * n.x + i.x] = here + alpha * (left - here);
}
"""


@functools.cache
def stills() -> dict[str, str]:
    """Return the HTML that each instrument leaves in a saved notebook."""
    kernels: Any = mnb.compile(SOURCE)
    x, y = np.random.default_rng(0).random((2, 4096), np.float32)
    image = x.reshape(64, 64)
    with mnb.monitor() as monitor:
        for _ in range(5):
            kernels.saxpy(x, y.copy(), a=2.0)
    tuner = mnb.tune(kernels.turned, image, threadgroup=[(8, 8), (16, 4), (32, 2)])
    tuner.wait()
    moving = mnb.animate(kernels.heat, image, alpha=0.2, steps=4)
    moving.step()
    moving.wait()
    shown: dict[str, Any] = {
        "card": kernels.saxpy,
        "timing": mnb.measure(kernels.saxpy, x, y.copy(), a=2.0),
        "compare": mnb.compare([kernels.saxpy.prepare(x, y, a=2.0), kernels.turned.prepare(image), x.copy]),
        "two": mnb.compare(kernels.saxpy.prepare(x, y, a=2.0), kernels.turned.prepare(image)),
        "limits": mnb.limits(),
        "roofline": mnb.roofline(kernels.saxpy.prepare(x, y, a=2.0), flops=[2 * x.size]),
        "race": mnb.validate(kernels.race, x[:64], grid=64, threadgroup=64),
        "wrong": kernels.saxpy.check(x, y, a=2.0, expected=lambda x, y, a: a * x),
        "profile": mnb.profile(kernels.turned, image),
        "stepper": mnb.trace(kernels.race, x[:64], grid=64, threadgroup=64),
        "monitor": monitor,
        "dashboard": mnb.dashboard(kernels.saxpy, x, y, a=2.0),
        "tune": tuner,
        "animate": moving,
        "explore": mnb.explore(kernels.heat, image, alpha=0.2),
        "memory": mnb.memory_info(),
        "engines": mnb.engines(),
    }
    return {name: _html(each) for name, each in shown.items()}


def _html(shown: Any) -> str:
    if hasattr(shown, "_repr_mimebundle_"):
        return str(shown._repr_mimebundle_()["text/html"])
    return str(shown._repr_html_())


# --- GitHub ----------------------------------------------------------------------------------------------------------

_REMOVED = {"style", "script", "svg", "button", "canvas"}
_KEPT = {
    "b", "br", "code", "details", "div", "em", "i", "img", "mark", "p", "pre", "s", "small", "span", "strong", "sub",
    "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "wbr",
}  # fmt: skip
_EMPTY = {"br", "hr", "img", "wbr"}
_ATTRIBUTES = {"src", "alt", "title", "width", "height", "colspan", "rowspan", "open"}


class _Sanitizer(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag in _REMOVED
        if not self.depth and tag in _KEPT:
            named = "".join(f' {k}="{escape(v or "")}"' for k, v in attrs if k in _ATTRIBUTES)
            self.kept.append(f"<{tag}{named}{'/' if tag in _EMPTY else ''}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _EMPTY:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _REMOVED:
            self.depth -= 1
        elif not self.depth and tag in _KEPT - _EMPTY:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.kept.append(escape(data, quote=False))


def sanitized(html: str) -> str:
    """Return what a strict page leaves of HTML: no styles, classes, scripts, drawings or buttons."""
    reader = _Sanitizer()
    reader.feed(html)
    reader.close()
    return "".join(reader.kept)


# --- VS Code ---------------------------------------------------------------------------------------------------------

VSCODE = {"light": ("#3b3b3b", "#ffffff"), "dark": ("#cccccc", "#1f1f1f")}
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src https: http: data:; font-src https:; connect-src https:; child-src https: data:;"
)


def vscode_page(theme: str) -> str:
    """Return an empty page of VS Code's notebook renderer: its policy, its colors, its rules for tables and code."""
    ink, paper = VSCODE[theme]
    body = f'<body class="vscode-{theme}" data-vscode-theme-kind="vscode-{theme}"><div id="container"></div></body>'
    return f"""<!doctype html>
<html lang="en" style="--vscode-editor-foreground:{ink}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<style>
html {{ background: {paper} }}
body {{ margin: 0; padding: 0 20px; color: var(--vscode-editor-foreground); font: 13px sans-serif }}
code {{ color: {ink}; background: rgba(130, 130, 130, .3); padding: 1px 3px; border-radius: 4px }}
img {{ max-width: 100%; max-height: 100% }}
table, thead, tr, th, td, tbody {{ border: none !important; border-spacing: 0; border-collapse: collapse }}
table {{ width: 100% }}
table, th, tr {{ text-align: left !important }}
thead {{ font-weight: bold; background-color: rgba(130, 130, 130, .16) }}
th, td {{ padding: 4px 8px }}
tr:nth-child(even) {{ background-color: rgba(130, 130, 130, .08) }}
</style></head>{body}</html>"""


def vscode_script(name: str, html: str) -> str:
    """Return the script that shows an output as VS Code does: markup is set, then a copy of each script is run."""
    return f"""(() => {{
      const output = document.createElement('div');
      output.id = {json.dumps(name)};
      output.innerHTML = {json.dumps(html)};
      document.getElementById('container').append(output);
      for (const found of [...output.getElementsByTagName('script')]) {{
        const script = document.createElement('script');
        script.text = found.textContent;
        output.append(script);
        script.remove();
      }}
    }})()"""
