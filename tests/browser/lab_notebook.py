"""A notebook in JupyterLab: its cells are run, and its outputs are read, pointed at and clicked."""

import json
import time
from typing import Any

from lab import CELLS as ALL
from lab import PANEL, Page


class LabNotebook:
    """The notebook on the page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def run(self, i: int, *, wait: bool = True) -> None:
        """Run a cell, or run it again."""
        self.page.evaluate(f"({PANEL}.content.activeCellIndex = {i}, {PANEL}.content.mode = 'command')")
        count = f"{ALL}[{i}].model.executionCount"
        before = json.dumps(self.page.evaluate(count))
        self.page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
        done = f"{count} && {count} !== {before} && {ALL}[{i}].model.executionState === 'idle'"
        self.page.wait(done if wait else f"{ALL}[{i}].model.executionState !== 'idle' || {done}")

    def text(self, i: int) -> str:
        """Return the text of a cell's output."""
        return str(self.page.evaluate(f"{ALL}[{i}].node.querySelector('.jp-Cell-outputArea')?.innerText ?? ''"))

    def wait(self, i: int, condition: str) -> Any:
        """Wait until an expression of the output's element ``e`` is true."""
        found = f"{ALL}[{i}].node.querySelector('.jp-Cell-outputArea')"
        return self.page.wait(f"(e => e && ({condition}))({found})")

    def settled(self, i: int, value: str) -> Any:
        """Return a value of the output once it has stayed the same for a second."""
        before = None
        while before != (found := self.wait(i, value)):
            before = found
            time.sleep(1)
        return found

    def click(self, i: int, label: str) -> None:
        """Click a button with the mouse."""
        buttons = f"[...{ALL}[{i}].node.querySelectorAll('button.jupyter-button')]"
        self.press(f"{buttons}.find(b => b.innerText.trim() === {json.dumps(label)})")

    def press(self, element: str, move: float = 0.0, down: float = 0.0) -> None:
        """Press the mouse on an element, and drag right and down before releasing."""
        box = self.page.evaluate(f"""(e => {{
          e.scrollIntoView({{block: 'center'}});
          const r = e.getBoundingClientRect();
          return [r.x + r.width / 2, r.y + r.height / 2];
        }})({element})""")
        x, y = box
        mouse = lambda kind, part: self.page.call(  # noqa: E731
            "Input.dispatchMouseEvent", type=kind, x=x + part * move, y=y + part * down, button="left", buttons=1,
            clickCount=1,
        )  # fmt: skip
        mouse("mousePressed", 0)
        for step in range(1, 6 if move or down else 0):
            mouse("mouseMoved", step / 5)
        mouse("mouseReleased", 1)

    def over(self, element: str) -> None:
        """Move the mouse onto an element."""
        x, y = self.page.evaluate(f"""(e => {{
          e.scrollIntoView({{block: 'center'}});
          const r = e.getBoundingClientRect();
          return [r.x + r.width / 2, r.y + r.height / 2];
        }})({element})""")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def away(self) -> None:
        """Move the mouse and the keyboard focus off every widget."""
        self.page.evaluate("document.activeElement.blur()")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)

    def key(self, key: str, modifiers: int = 0) -> None:
        """Press a key in the focused element."""
        for kind in ("rawKeyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers)

    def still(self, i: int, kind: str = "text/html") -> str:
        """Return the picture that a saved notebook keeps."""
        return str(self.page.evaluate(f"{ALL}[{i}].model.outputs.get(0).toJSON().data['{kind}']"))
