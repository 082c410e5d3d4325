"""JupyterLab in a headless Chromium, driven through Chromium's DevTools protocol."""

import base64
import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import websocket

T = TypeVar("T")

EXTENSION = Path(__file__).resolve().parent.parent / "labextension" / "prebuilt"
SETTINGS = {
    # Every cell is in the document, including those out of view.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

PANEL = "[...(window.jupyterapp?.shell.widgets('main') ?? [])].find(w => w.context?.path.endsWith('.ipynb'))"
CELLS = f"{PANEL}.content.widgets"
CODE = f"{CELLS}.filter(w => w.model?.type === 'code')"
ACCEPT = "document.querySelector('.jp-Dialog .jp-mod-accept')"
COMPLETER = ".jp-Completer:not(.lm-mod-hidden)"
WORD = ".jp-Completer-match"
# Each run of text in a cell with its color: the token's, as the browser draws it.
COLORS = f"""(i => [...{CELLS}[i].node.querySelectorAll('.cm-line')].flatMap(line =>
  [...line.querySelectorAll('span')].map(s => [s.textContent, getComputedStyle(s).color])))"""


class Page:
    """A page of the browser."""

    def __init__(self, address: str, end: float) -> None:
        # Without this the browser refuses a client without an origin.
        self._socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self._numbers = itertools.count(1)
        self._end = end

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its answer, discarding events that come before it."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def evaluate(self, script: str) -> Any:
        """Evaluate an expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression is true; return its value. Each wait may take a minute, even after long ones."""
        return until(lambda: self.evaluate(script), max(self._end, time.monotonic() + 60), script)

    def screenshot(self, path: Path, **clip: float) -> None:
        """Write a PNG of the page, or of a part of it: x, y, width, height and scale."""
        part = {"clip": clip} if clip else {}
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=bool(clip), **part)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def open(self, address: str) -> None:
        """Open a notebook and wait until its kernel is ready."""
        self.call("Page.navigate", url=address)
        self.wait(f"({PANEL})?.context.isReady && {PANEL}.sessionContext.session?.kernel?.status === 'idle'")
        self.evaluate(f"jupyterapp.shell.activateById({PANEL}.id)")
        self.evaluate("jupyterapp.shell.collapseLeft()")

    def run_first(self) -> None:
        self.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
        self.wait(f"{CELLS}[0].model.executionCount && {CELLS}[0].model.executionState === 'idle'")

    def restart_and_run_all(self) -> None:
        self.evaluate("void jupyterapp.commands.execute('notebook:restart-run-all')")
        self.wait(f"{ACCEPT} !== null")
        self.evaluate(f"{ACCEPT}.click()")
        self.wait(f"{CODE}.every(w => w.model.executionCount && w.model.executionState === 'idle')")

    def dress(self, theme: str) -> None:
        """Change to the theme ``light`` or ``dark``."""
        self.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: {json.dumps(THEMES[theme])}}})")
        self.wait(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
        self.wait("!document.querySelector('#jupyterlab-splash')")

    def close(self) -> None:
        self._socket.close()


class Cell:
    """A cell of the notebook on the page, to type into."""

    def __init__(self, page: Page, index: int) -> None:
        self.page = page
        self.index = index

    def mime(self) -> str:
        return str(self.page.evaluate(f"{CELLS}[{self.index}].model.mimeType"))

    def put(self, text: str) -> None:
        """Replace its text."""
        self.page.evaluate(f"{CELLS}[{self.index}].model.sharedModel.setSource({json.dumps(text)})")

    def go(self, before: str) -> None:
        """Move the cursor to the end of a text."""
        self.page.evaluate(f"""(() => {{
          const notebook = {PANEL}.content;
          notebook.activeCellIndex = {self.index};
          notebook.mode = 'edit';
          const editor = notebook.activeCell.editor;
          const at = editor.model.sharedModel.getSource().indexOf({json.dumps(before)}) + {len(before)};
          editor.focus();
          editor.setCursorPosition(editor.getPositionAt(at));
        }})()""")

    def type(self, text: str) -> None:
        self.page.call("Input.insertText", text=text)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                           modifiers=modifiers)  # fmt: skip

    def tab(self) -> list[str]:
        """Press Tab, again if JupyterLab discards an answer because it took over a second; return the completions."""
        listed = f"document.querySelector('{COMPLETER} {WORD}') !== null"
        shown = f"""new Promise(done => {{
          const end = Date.now() + 3000;
          const look = () => {listed} || Date.now() > end ? done({listed}) : setTimeout(look, 50);
          look();
        }})"""

        def pressed() -> bool:
            self.press("Tab", 9)
            return bool(self.page.evaluate(shown))

        until(pressed, time.monotonic() + 120, listed)
        return list(self.page.evaluate(f"[...document.querySelectorAll('{COMPLETER} {WORD}')].map(e => e.textContent)"))

    def shift_tab(self) -> str:
        """Press Shift-Tab; return the tooltip's text."""
        self.press("Tab", 9, modifiers=8)
        return str(self.page.wait("document.querySelector('.jp-Tooltip-content')?.innerText"))

    def escape(self) -> None:
        self.press("Escape", 27)
        self.page.wait(f"!document.querySelector('{COMPLETER}, .jp-Tooltip')")

    def color(self, word: str, after: str = "") -> str:
        """Return the color of a token's first occurrence after `after`."""
        self.page.wait(f"{COLORS}({self.index}).length > 1")
        found = self.page.evaluate(f"{COLORS}({self.index})")
        words = [text for text, _ in found]
        at = words.index(word, words.index(after) if after else 0)
        return str(found[at][1])


def until(found: Callable[[], T], end: float, what: str) -> T:
    """Ask repeatedly until the answer is true or the monotonic clock reaches `end`."""
    while True:
        answer = found()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"not in time: {what}")
        time.sleep(0.1)


@contextmanager
def process(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that is ended with its children; its output goes to a file."""
    with log.open("wb") as out:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment},
        )  # fmt: skip
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


@contextmanager
def chromium(browser: str, folder: Path, end: float, width: int = 1200, height: int = 1000) -> Iterator[Page]:
    """Start a browser and yield its page. Waits on it end soon after `end`, by the monotonic clock."""
    profile = folder / "profile"
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-extensions", "--disable-background-networking", "--remote-debugging-port=0",
        f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    port = profile / "DevToolsActivePort"
    with process(command, folder / "chromium.log") as started:
        until(lambda: alive(started) and port.exists() and "\n" in port.read_text(), end, "the browser's port")
        (number, _) = port.read_text().splitlines()
        targets = f"http://127.0.0.1:{number}/json/list"
        target = until(lambda: next((t for t in get_json(targets) if t["type"] == "page"), None), end, "a page")
        page = Page(target["webSocketDebuggerUrl"], end)
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)  # JupyterLab's commands act on the focus
        try:
            yield page
        finally:
            page.close()


def alive(started: subprocess.Popen[bytes]) -> bool:
    if started.poll() is not None:
        raise RuntimeError(f"{started.args!r} ended with {started.returncode}")
    return True


def get_json(address: str) -> Any:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310  (this machine's own)
            return json.load(answer)
    except OSError:
        return []


@contextmanager
def jupyterlab(notebooks: Path, folder: Path, end: float) -> Iterator[Callable[[str], str]]:
    """Start JupyterLab with fresh settings and the tree's extension; yield a function that returns a notebook's URL."""
    settings = folder / "settings"
    for name, values in SETTINGS.items():
        path = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    extensions = folder / "share" / "labextensions"
    extensions.mkdir(parents=True)
    extensions.joinpath("metalnb").symlink_to(EXTENSION)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--LabApp.expose_app_in_browser=True",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={notebooks}",
    ]  # fmt: skip
    own = {
        "JUPYTERLAB_SETTINGS_DIR": settings, "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
        "JUPYTER_RUNTIME_DIR": folder / "runtime", "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_PATH": folder / "share",
    }  # fmt: skip
    with process(command, folder / "jupyterlab.log", **{k: str(v) for k, v in own.items()}) as started:
        status = f"http://127.0.0.1:{port}/api/status?token={token}"
        until(lambda: alive(started) and get_json(status), end, "JupyterLab")
        yield lambda name: f"http://127.0.0.1:{port}/lab/tree/{name}?token={token}"


def new_notebook(*cells: Any) -> Any:
    """Return a notebook of cells, where a string is a code cell."""
    import nbformat  # imported here: it takes seconds, and every worker collects the files that import this one

    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python", "mimetype": "text/x-python", "codemirror_mode": {"name": "ipython"}},
    }
    made = [nbformat.v4.new_code_cell(c.strip()) if isinstance(c, str) else c for c in cells]
    return nbformat.v4.new_notebook(cells=made, metadata=metadata)


@contextmanager
def opened(
    notebook: Any, browser: str, folder: Path, seconds: float, width: int = 1200, height: int = 1000
) -> Iterator[Page]:
    """Open a notebook in a separate JupyterLab whose files are in a folder; yield the page."""
    import nbformat

    notebooks = folder / "notebooks"
    notebooks.mkdir()
    nbformat.write(notebook, notebooks / "notebook.ipynb")
    end = time.monotonic() + seconds
    with jupyterlab(notebooks, folder, end) as address, chromium(browser, folder, end, width, height) as page:
        page.open(address("notebook.ipynb"))
        yield page
