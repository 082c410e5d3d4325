"""Make the page of the language, ``metalnb/msl/README.md``, from the tests' tables and a test run's measurements.

``python tests/msl/page.py`` runs the tests that the specification's chapters name, and writes the page and the
measurements, ``measurements.json``; ``test_page.py`` compares the page with the tables. With ``--again`` it rewrites
the page from the last measurements.
"""

from __future__ import annotations

import datetime as dt
import html
import json
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from msl.functions import REALS, Real  # noqa: E402  (after the path)
from msl.specification import CHAPTERS, Chapter, Entry, uses  # noqa: E402

import metalnb as mnb  # noqa: E402
from metalnb.msl.language.attributes import ATTRIBUTES  # noqa: E402
from metalnb.msl.language.unsupported import UNSUPPORTED  # noqa: E402
from metalnb.msl.language.versions import LAMBDAS, SINCE, VERSIONS, version_text  # noqa: E402

__all__ = ["MEASUREMENTS", "PAGE", "Measured", "figures", "key", "page", "read", "write"]

PAGE = HERE.parent.parent / "metalnb" / "msl" / "README.md"
MEASUREMENTS = HERE / "measurements.json"
HALF_WITHOUT_BOUND = {"pow", "powr"}  # table 8.3 leaves them out
KINDS = ("float", "half")
MODES = ("precise", "fast")

# Attributes of things that a kernel could have but metalnb lacks; the others belong to other stages.
_OF_KERNELS = {"2.13", "2.16", "5.1.4, 5.1.5", "5.1.12", "5.2.1", "5.2.2", "5.2.4"}


@dataclass(slots=True)
class Measured:
    """The results of a test run.

    Attributes
    ----------
    date, device, system : str
    shown : dict of str to str
        The test that covers each name.
    ulp : dict of str to (dict of str to float)
        Each function's greatest error, by element type and mode.
    every_float : dict of str to float
        The greatest error of each function of one float over all 2^32, on the engine `cpu`: `every_float.py`.
    """

    date: str = ""
    device: str = ""
    system: str = ""
    shown: dict[str, str] = field(default_factory=dict)
    ulp: dict[str, dict[str, float]] = field(default_factory=dict)
    every_float: dict[str, float] = field(default_factory=dict)


def key(chapter: Chapter, name: str) -> str:
    """Return a name's key among all chapters: there is an `abs` of integers, and one of floats."""
    return f"{chapter.section} {name}"


class Recorder:
    """A plugin of pytest: notes which cells each test compiles, which tests pass, and the errors they measure."""

    def __init__(self) -> None:
        self.cells: dict[str, list[str]] = defaultdict(list)
        self.failed: set[str] = set()
        self.ulp: dict[str, dict[str, float]] = defaultdict(dict)
        self._test = ""
        self._compile = mnb.compile
        mnb.compile = self.compile  # type: ignore[assignment]

    def compile(self, source: str, *args: Any, **options: Any) -> Any:
        """Compile and note the cell."""
        program = self._compile(source, *args, **options)
        if self._test:
            self.cells[self._test].append(source)
        return program

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the running test."""
        self._test = item.nodeid.split("[")[0]
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note failures and measurements."""
        if report.failed:
            self.failed.add(report.nodeid.split("[")[0])
        if report.when == "call":
            for function, kind, mode, error in (value for name, value in report.user_properties if name == "ulp"):
                place = f"{kind} {mode}"
                self.ulp[function][place] = max(error, self.ulp[function].get(place, 0.0))

    def measured(self) -> Measured:
        """Return each name's test among those that passed."""
        shown = {}
        texts = {test: "\n".join(cells) for test, cells in self.cells.items() if test not in self.failed}
        for chapter in CHAPTERS:
            for name in (n for entry in chapter.entries if not entry.lack for n in entry.names):
                pattern = uses(chapter.kind, name)
                found = (test for wanted in chapter.tests for test, text in texts.items()
                         if f"{test}::".startswith(f"tests/msl/{wanted}::") and pattern.search(text))  # fmt: skip
                shown[key(chapter, name)] = next(found, "")
        today = dt.datetime.now(dt.UTC).date().isoformat()
        system = f"{platform.system()} {platform.machine()}"
        return Measured(today, mnb.engines()["cpu"].device, system, shown, dict(self.ulp), read().every_float)


# Markdown -------------------------------------------------------------------------------------------------------------


def page(measured: Measured) -> str:
    """Write the page."""
    parts = [_INTRODUCTION.format(counts=_counts(), m=measured)]
    for chapter in CHAPTERS:
        parts += [f"## {chapter.title} ({chapter.section})\n", _chapter(chapter, measured)]
    parts += [
        "## Floating-point operators (8.4)\n", _operators(measured),
        "## Mathematics of the engine `cpu`\n", _own_mathematics(measured),
        "## The language itself (1.5, 2 to 5)\n",
        *(f"Supported, as shown by {_link(test)}: {_prose('; '.join(names))}.\n" for test, names in features().items()),
        "## What Apple's compiler and metalnb reject\n", _refused(),
        "## What metalnb does not support\n", _outside(),
    ]  # fmt: skip
    return "\n".join(parts)


_INTRODUCTION = """\
# Metal Shading Language in metalnb

This page lists the features of MSL for compute kernels on buffers, and shows which of them metalnb supports. The tests
generate it from the tables that drive them (`make docs`); a test fails if the page is out of date.

{counts}

**Sections** are those of the Metal Shading Language specification, version 4. **Since** is the version of MSL, on
macOS, that introduced a name. The engine `metal` has the version of its macOS, `metal:metalcompute` has 2.3; a cell
that needs a newer one is rejected with a message. The engine `cpu` supports everything here. A test is named only if it
passed, used the name and compared the results.

**Errors** are in units in the last place of the result's type (MSL 8.4): the greatest that the test found, on edge
cases (zeros, denormals, infinities, NaN, poles) and random arguments, scalars and vectors, against a float64 oracle.
A *bound* is the specification's for precise math (tables 8.1 and 8.3); 0.5 is "correctly rounded", 0 is exact. If the
specification has none, the test's bound is in parentheses. Fast math (`math="fast"`, the default) must satisfy the
same bounds, except for the four functions with the looser bound of table 8.2 beside the figure. These figures do not
include the reordering of expressions, which fast math also allows.

Measured on {m.date}: {m.device}, {m.system}, engine `cpu`. On an Apple GPU the errors are those of Apple's functions.
"""


def _counts() -> str:
    have = [e for c in CHAPTERS for e in c.entries if not e.lack for _ in e.names]
    early = [e for e in have if _version(e.since) <= (2, 3)]
    chapters = [c for c in CHAPTERS if c.kind == "function"]
    functions = [e for c in chapters for e in c.entries]
    inside = [e for e in functions if _version(e.since) <= (2, 3)]
    usable = [a for a in ATTRIBUTES.values() if a.use != "graphics"]
    apple = sum(len(g.names) for g in UNSUPPORTED if g.apple)
    stages = sum(a.use == "graphics" and a.section not in _OF_KERNELS for a in ATTRIBUTES.values())
    lacks = sum(len(e.names) for c in CHAPTERS for e in c.entries if e.lack)
    rest = sum(len(g.names) for g in UNSUPPORTED if not g.apple)
    rest_attributes = sum(a.use == "graphics" and a.section in _OF_KERNELS for a in ATTRIBUTES.values())
    return "\n".join([
        "| | MSL 2.3 | later | total |",
        "|---|--:|--:|--:|",
        f"| functions supported | {len(inside)} | {len(functions) - len(inside)} | {len(functions)} |",
        _count("kernel attributes supported", [_version(a.since) for a in usable]),
        f"| names supported, with types, constants and words | {len(early)} | {len(have) - len(early)} | {len(have)} |",
        f"| names rejected, as by Apple's compiler in a kernel | | | {apple + stages} |",
        f"| rules of the language enforced | | | {len(refusals())} |",
        f"| names not supported, each with its reason | | | {rest + rest_attributes + lacks} |",
    ])  # fmt: skip


def _count(title: str, versions: list[tuple[int, ...]]) -> str:
    early = sum(v <= (2, 3) for v in versions)
    return f"| {title} | {early} | {len(versions) - early} | {len(versions)} |"


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _chapter(chapter: Chapter, measured: Measured) -> str:
    """Write a chapter's table; a test that covers all of it is named once, above the table."""
    tests = [_test(chapter, entry, measured) for entry in chapter.entries]
    shared = tests[0] if len(set(tests)) == 1 and not chapter.entries[0].lack else ""
    head = ["function" if chapter.kind == "function" else "name", "since"]
    rows = [[_names(e.names), e.since] for e in chapter.entries]
    if chapter.section in {"6.2", "6.5"} and chapter.kind == "function":
        head += _FIGURES
        rows = [[*row, *figures(entry.names[0], chapter.section, measured)]
                for row, entry in zip(rows, chapter.entries, strict=True)]  # fmt: skip
    if any(entry.note for entry in chapter.entries):
        head.append("note")
        rows = [[*row, entry.note] for row, entry in zip(rows, chapter.entries, strict=True)]
    if not shared:
        head.append("supported, as shown by")
        rows = [[*row, test] for row, test in zip(rows, tests, strict=True)]
    exact = " Results are exact." if chapter.section in {"6.3", "6.4"} else ""
    above = f"All supported, as shown by {shared}.{exact}\n\n" if shared else f"{exact.strip()}\n\n" if exact else ""
    return above + _table(head, rows)


_FIGURES = ["float bound", "precise", "fast", "half bound", "precise", "fast"]


def figures(name: str, section: str, measured: Measured) -> list[str]:
    """Return a function's bounds and errors: for float, then for half."""
    rows = [row for row in REALS if row.section == section and row.name.split("'")[0] == name]
    found = []
    for kind in KINDS:
        own = "" if section != "6.2" and (kind == "float" or name not in HALF_WITHOUT_BOUND) else "()"
        bound = f"{max(row.ulp if kind == 'float' else row.half for row in rows):g}"
        found.append(f"({bound})" if own else bound)
        found += [_figure(rows, kind, mode, measured) for mode in MODES]
    return found


def _figure(rows: list[Real], kind: str, mode: str, measured: Measured) -> str:
    errors = [measured.ulp.get(row.name, {}).get(f"{kind} {mode}") for row in rows]
    text = f"{max(e for e in errors if e is not None):.3g}" if None not in errors else "?"
    fast = next((row.fast for row in rows if row.fast is not None), None)
    return f"{text} (≤ {fast:g})" if kind == "float" and mode == "fast" and fast is not None else text


def _operators(measured: Measured) -> str:
    names = [row.name for row in REALS if row.section == "8.4"]
    link = _link("tests/msl/test_functions.py::test_reals_keep_their_bounds")
    table = _table(["operator", "since", *_FIGURES], ([f"`{n}`", "1.0", *figures(n, "8.4", measured)] for n in names))
    return f"All supported, as shown by {link}.\n\n{table}"


def _own_mathematics(measured: Measured) -> str:
    """Write the greatest error of each function of one float, over all floats."""
    rows = [[f"`{row.name}`", f"{row.ulp:g}", f"{measured.every_float[row.name]:.2f}"]
            for row in REALS if row.name in measured.every_float]  # fmt: skip
    table = _table(["function", "float bound", "greatest error"], rows)
    return (
        "The engine uses metalnb's functions on every machine: straight-line code in single or double precision. These "
        "are the greatest errors over all 2^32 floats, with and without an instruction for `fma`, "
        "measured by [every_float.py](../../tests/msl/every_float.py) (`log2`, `log10`: all significands of three "
        "exponents; `sinh` and the inverse hyperbolic functions: all floats from 1/64 to 8). "
        "For functions of two arguments, over 2^23 random pairs and all "
        f"edge cases: `atan2` 1.6, `pow` and `powr` 0.51; `fmod`, `ldexp` and `nextafter` are exact.\n\n{table}"
    )


def features() -> dict[str, list[str]]:
    """Return the language features that each test covers."""
    from msl import language_cells

    tables = {"test_language": language_cells.ROWS, "test_address_spaces": language_cells.SPACES,
              "test_threadgroup_variables": language_cells.THREADGROUP}  # fmt: skip
    return {f"tests/msl/test_language.py::{test}": [row[0] for row in rows] for test, rows in tables.items()}


def refusals() -> tuple[tuple[str, str, str, str], ...]:
    """Return the golden refusals of what Apple's compiler refuses: name, source, message, cure."""
    from msl.refused_cells import REFUSED

    return tuple(row for row in REFUSED if "metalnb runs" not in row[2])


def _refused() -> str:
    last = version_text(max(v for v in VERSIONS if v < LAMBDAS))
    rules = _table(["what", "since", "message", "fix"], [
        *([_prose(name), _rule_since(message), f"`{message}`", _prose(hint)] for name, _, message, hint in refusals()),
        ["a lambda", f"1.0, to {last}", f"`a lambda needs MSL {version_text(LAMBDAS)}`",
         f"write a function, or ask for the version: `%%metal --msl {version_text(LAMBDAS)}`"],
        *([f"`{word}`", f"1.0, to {version_text(max(v for v in VERSIONS if v < since))}",
           f"`'{word}' needs MSL {version_text(since)}`", f"ask for the version: `%%metal --msl {version_text(since)}`"]
          for word, since in SINCE.items()),
    ])  # fmt: skip
    groups = _table(["names", "section", "since", "why"], [
        *([_names(g.names), g.section, g.since, g.reason] for g in UNSUPPORTED if g.apple),
        *([_names(names, "[[{}]]"), section, "", "attributes of other stages than kernels"]
          for section, names in _attributes(of_kernels=False)),
    ])  # fmt: skip
    link = _link("tests/msl/test_refusals.py::test_refused")
    names = _link("tests/msl/test_unsupported_features.py::test_a_name_is_refused_with_its_reason")
    asked = _link("tests/language/test_language_versions.py::test_a_word_is_refused_before_its_version")
    return (
        f"Each is shown by {link}: the message, its position and its fix. Rows that end with a version apply if a "
        f'cell requests that version or an earlier one, as `msl="2.3"` does ({asked}).\n\n{rules}\n'
        f"Likewise, by {names}:\n\n{groups}"
    )


def _rule_since(message: str) -> str:
    """Return the MSL version since which a rule can be broken: that of the latest MSL name in its message, if any."""
    named = (ATTRIBUTES[word].since for word in re.findall(r"\w+", message) if word in ATTRIBUTES)
    later = (version_text(SINCE[word]) for word in re.findall(r"\w+", message) if word in SINCE)
    return max((*named, *later), key=_version, default="1.0")


def _outside() -> str:
    link = _link("tests/msl/test_unsupported_features.py::test_a_name_is_refused_with_its_reason")
    table = _table(["names", "section", "since", "why", "instead"], [
        *([_names(g.names), g.section, g.since, g.reason, g.cure] for g in UNSUPPORTED if not g.apple),
        *([_names(names, "[[{}]]"), section, "", "metalnb runs compute kernels on buffers that Python passes",
           "pass the values in a device or constant buffer"] for section, names in _attributes(of_kernels=True)),
    ])  # fmt: skip
    return f"Using one is an error with the reason ({link}).\n\n{table}"


def _attributes(*, of_kernels: bool) -> list[tuple[str, tuple[str, ...]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for a in ATTRIBUTES.values():
        if a.use == "graphics" and (a.section in _OF_KERNELS) == of_kernels:
            found[a.section].append(a.name)
    return [(section, tuple(names)) for section, names in found.items()]


def _test(chapter: Chapter, entry: Entry, measured: Measured) -> str:
    if entry.lack:
        return f"**no**: {entry.lack}"
    tests = dict.fromkeys(measured.shown.get(key(chapter, name), "") for name in entry.names)
    return ", ".join(_link(test) if test else "?" for test in tests)


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})"


def _prose(text: str) -> str:
    """Escape Markdown's special characters."""
    return html.escape(text, quote=False).replace("*", r"\*")


def _names(names: Iterable[str], form: str = "{}") -> str:
    return " ".join(f"`{form.format(name)}`" for name in names)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


def measure() -> Measured | None:
    """Run the tests; return None if one fails or a name is not covered."""
    recorder = Recorder()
    chapters = [c for c in CHAPTERS if not all(entry.lack for entry in c.entries)]
    tests = sorted({str(HERE / test) for chapter in chapters for test in chapter.tests})
    failed = pytest.main(["-q", *tests], [recorder])
    measured = recorder.measured()
    missing = [name for name, test in measured.shown.items() if not test]
    for name in missing:
        sys.stderr.write(f"no passing test uses {name}\n")
    return None if failed or missing else measured


def read() -> Measured:
    """Return the last measurement."""
    return Measured(**json.loads(MEASUREMENTS.read_text()))


def write(measured: Measured) -> None:
    """Write a measurement."""
    MEASUREMENTS.write_text(json.dumps(asdict(measured), indent=1, sort_keys=True) + "\n")


def main() -> int:
    """Write the page; measure first unless ``--again`` is given."""
    measured = read() if "--again" in sys.argv[1:] else measure()
    if measured is None:
        return 1
    write(measured)
    PAGE.write_text(page(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
