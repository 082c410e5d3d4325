"""metalnb without the extra ``display``: kernels and ops run, records show as text, and widgets name what they need."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from metalnb.rendering import DISPLAY

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {DISPLAY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])

sys.meta_path.insert(0, Absent())
import importlib.util
plain = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {DISPLAY!r} else plain(name, package)
import numpy as np
import metalnb as mnb
"""
KERNEL = """
saxpy = mnb.compile(\'\'\'kernel void saxpy(device const float* x, device float* y, constant float& a,
                          uint i [[thread_position_in_grid]]) { y[i] += a * x[i]; }\'\'\').saxpy
x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
saxpy(x, y, a=2.0)
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_kernels_and_ops_run_in_the_smallest_install() -> None:
    assert run(KERNEL + "print(y.tolist(), mnb.softmax(mnb.zeros(4)).tolist())") == (
        "[1.0, 3.0, 5.0, 7.0, 9.0] [0.25, 0.25, 0.25, 0.25]"
    )


def test_kernels_engines_and_measurements_show_as_text() -> None:
    records = {
        "saxpy": "<metalnb.Kernel saxpy(device const float* x, device float* y, constant float& a)",
        "mnb.engines()": " is in use: it is the first that can run here",
        "mnb.measure(saxpy, x, y, a=2.0)": "arguments: x float32 (5,), y float32 (5,), a 2",
        "mnb.profile(saxpy, x, y, a=2.0)": "saxpy: 5 threads in threadgroups of 5",
        "mnb.validate(saxpy, x, y, a=2.0)": "saxpy: no fault, 5 threads, 20 accesses",
    }
    texts = f"[str(record) for record in ({', '.join(records)})]"
    shown = json.loads(run(f"{KERNEL}import json\nprint(json.dumps({texts}))"))
    for text, phrase in zip(shown, records.values(), strict=True):
        assert phrase in text


def test_measurement_shows_as_html_and_text() -> None:
    assert run(KERNEL + "print(sorted(mnb.measure(saxpy, x, y, a=2.0)._repr_mimebundle_()))") == (
        "['text/html', 'text/plain']"
    )


@pytest.mark.parametrize("name", ["animate", "dashboard", "explore", "monitor", "tune"])
def test_a_widget_names_the_extra(name: str) -> None:
    needed = f"metalnb.{name} needs {', '.join(DISPLAY)}: pip install 'metalnb[display]'"
    assert run(f"try:\n    mnb.{name}\nexcept AttributeError as error:\n    print(error)") == needed


def test_a_plot_names_the_extra() -> None:
    text = KERNEL + (
        "timing = mnb.measure(saxpy, x, y, a=2.0)\n"
        "try:\n    timing.plot()\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    assert run(text) == "matplotlib is missing. pip install 'metalnb[display]'"


def test_a_record_that_is_drawn_shows_its_text_and_names_the_extra() -> None:
    shown = run(KERNEL + "print(mnb.roofline(mnb.measure(saxpy, x, y, a=2.0))._repr_mimebundle_())")
    assert "'text/plain'" in shown
    assert "matplotlib is missing. pip install &#x27;metalnb[display]&#x27;</pre>" in shown
    assert "image/png" not in shown


def test_the_modules_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {requirement.partition(">")[0] for requirement in extras["display"]}
    assert named == {{"PIL": "pillow"}.get(module, module.lower()) for module in DISPLAY}
