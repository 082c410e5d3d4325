"""Report which engines can run here: each is examined and tried with a small kernel whose result is checked."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.plurals import quantity

from . import cache, engine
from .cache_limit import size_limit
from .display import nbytes
from .errors import MetalnbError
from .program import compile

__all__ = ["Checkup", "EngineTrial", "examine", "write"]

_THREADS = 1_000_003  # no threadgroup size divides it

# The kernel uses integers, so that only one result is right, and a barrier and threadgroup memory, as most kernels do.
_KERNEL = """\
#include <metal_stdlib>
using namespace metal;
kernel void checkup(device const uint* x, device uint* y, constant uint& a, uint i [[thread_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup uint tile[256];
    tile[t] = a * x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = tile[n - 1 - t] + i;
}
"""


@dataclass(frozen=True, slots=True)
class EngineTrial:
    """One engine on this machine.

    Attributes
    ----------
    name, device : str
    versions : dict of str to str
    works : bool
        True if the kernel ran and every value was right.
    problem : str
        Why it cannot run, or the error, with the command that fixes it if there is one.
    compile_seconds, run_seconds : float
        The kernel's times: from its source to the first result, and for a second run.
    """

    name: str
    device: str = ""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    works: bool = False
    problem: str = ""
    compile_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of `examine`.

    Attributes
    ----------
    versions : dict of str to str
        The versions of metalnb and its dependencies; "missing" if a package is not installed.
    system : str
    cache : str
        The cache's folder.
    cache_bytes, cache_entries : int
    cache_problem : str
        Why the folder cannot be written; empty if it can.
    cache_limit : int or None
        The most bytes that the cache may take; None if there is no limit.
    trials : tuple of EngineTrial
    chosen : str
        The engine on which a cell runs by default; empty if there is none.
    chosen_problem : str
        Why no engine is chosen.
    chosen_why : str
        Why this engine is chosen, as part of a sentence.
    """

    versions: dict[str, str]
    system: str
    cache: str
    cache_bytes: int
    cache_entries: int
    cache_problem: str
    trials: tuple[EngineTrial, ...]
    chosen: str = ""
    chosen_problem: str = ""
    chosen_why: str = ""
    cache_limit: int | None = None

    @property
    def works(self) -> bool:
        """True if at least one engine works."""
        return any(t.works for t in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Return the checkup as plain values."""
        return {"works": self.works, **dataclasses.asdict(self)}


def examine() -> Checkup:
    """Try every engine. Nothing is raised: errors are part of the result.

    Returns
    -------
    Checkup
    """
    trials = tuple(map(_try, engine.REGISTRY))  # first, since it fills the cache, whose size is reported
    store = cache.store()
    problem = _cache_problem()
    usage = store.usage().values()
    engine_name, chosen_problem = _current_engine()
    return Checkup(
        versions=_versions(),
        system=f"{platform.system()} {platform.machine()}",
        cache=str(store.root),
        cache_bytes=sum(u.nbytes for u in usage),
        cache_entries=sum(u.entries for u in usage),
        cache_problem=problem,
        trials=trials,
        chosen=engine_name,
        chosen_problem=chosen_problem,
        chosen_why=engine.why_current() if engine_name else "",
        cache_limit=size_limit(),
    )


def _current_engine() -> tuple[str, str]:
    try:
        return engine.current().name, ""
    except Exception as error:  # noqa: BLE001  (as in `_try`)
        return "", _problem(error)


def _problem(error: Exception) -> str:
    """Return the text of an exception; metalnb's own errors already say how to fix them."""
    if isinstance(error, MetalnbError):
        return str(error)
    if isinstance(error, ImportError):
        return f"{error}: pip install metalnb installs its dependencies"
    return f"{type(error).__name__}: {error}"


def _versions() -> dict[str, str]:
    versions = {"metalnb": "", "Python": platform.python_version(), "numpy": "", "libclang": "", "ziglang": ""}
    for name in [name for name, version in versions.items() if not version]:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "missing"
    return versions


def _cache_problem() -> str:
    """Write to the cache and read it back."""
    store = cache.store()
    key = cache.digest("doctor")
    store.put(key, "doctor", b"works")
    if store.get(key, "doctor") == b"works":
        return ""
    return "cannot be written, so every cell is compiled again: set METALNB_CACHE to another folder"


def _try(name: str) -> EngineTrial:
    trial = EngineTrial(name)
    try:
        caps = engine.named(name).caps
        trial = EngineTrial(name, caps.device, dict(caps.versions))
        return _run(trial)
    except Exception as error:  # noqa: BLE001  (a broken driver may raise anything; the doctor must still report it)
        return dataclasses.replace(trial, problem=_problem(error))


def _run(trial: EngineTrial) -> EngineTrial:
    x = np.arange(_THREADS, dtype=np.uint32)
    start = time.perf_counter()
    kernel = compile(_KERNEL, engine=trial.name, name="doctor.metal")["checkup"]
    y = kernel(x, a=3, grid=_THREADS, threadgroup=256)
    compile_seconds = time.perf_counter() - start
    y.fill(0)
    start = time.perf_counter()
    kernel(x, y, 3, grid=_THREADS, threadgroup=256)
    run_seconds = time.perf_counter() - start
    wrong_count = int(np.count_nonzero(y != _expected_result(x)))
    if wrong_count:
        share = f"{wrong_count:,} of {_THREADS:,} values"
        problem = f"the kernel ran, but {share} are wrong: please report it with this text"
        return dataclasses.replace(trial, problem=problem)
    return dataclasses.replace(trial, works=True, compile_seconds=compile_seconds, run_seconds=run_seconds)


def _expected_result(x: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Compute the kernel's result on the host: each threadgroup of 256, the last one shorter, reversed."""
    groups = [3 * x[start : start + 256][::-1] for start in range(0, x.size, 256)]
    return np.concatenate(groups) + x


def write(checkup: Checkup, *, color: bool = False, plain: bool = False) -> str:
    """Return a checkup as text for a terminal.

    Parameters
    ----------
    checkup : Checkup
    color : bool, optional
    plain : bool, optional
        True for a terminal that shows only ASCII.
    """
    bold, dim, green, red = (_paint(code if color else "") for code in ("1", "2", "32", "31"))
    good_mark, bad_mark, separator = ("ok", "--", ", ") if plain else ("✓", "✗", " · ")
    limit = f" of at most {nbytes(checkup.cache_limit)}" if checkup.cache_limit else ""
    size = f"{quantity(checkup.cache_entries, 'entry', 'entries')}, {nbytes(checkup.cache_bytes)}{limit}"
    lines = [
        separator.join([*(f"{name} {version}" for name, version in checkup.versions.items()), checkup.system]),
        f"cache: {checkup.cache} ({red(checkup.cache_problem) if checkup.cache_problem else size})",
        "",
    ]
    for trial in checkup.trials:
        mark = green(good_mark) if trial.works else red(bad_mark)
        lines.append(f"{mark} {bold(trial.name)}" + (f"  {trial.device}" if trial.device else ""))
        if trial.versions:
            versions = (v if v.startswith(part) else f"{part} {v}" for part, v in trial.versions.items())
            lines.append(f"    {dim(separator.join(versions))}")
        lines.append(f"    {_verdict(trial)}")
    return "\n".join([*lines, "", _ending(checkup, green, red)])


def _paint(code: str) -> Callable[[str], str]:
    return lambda text: f"\x1b[{code}m{text}\x1b[0m" if code else text


def _ending(checkup: Checkup, paint_good: Callable[[str], str], paint_bad: Callable[[str], str]) -> str:
    if not checkup.works:
        return paint_bad("No engine works on this machine.")
    if checkup.chosen_problem:
        return paint_bad(f"Cells cannot run: {checkup.chosen_problem}")
    cells = f"cells run on engine '{checkup.chosen}': {checkup.chosen_why}"
    names = {checkup.chosen, checkup.chosen.rpartition(":")[0]}
    failed = [t.name for t in checkup.trials if not t.works and t.name in names]
    if failed:
        alternative = next(t.name for t in checkup.trials if t.works)
        cure = f"METALNB_ENGINE={alternative} chooses one that works"
        return paint_bad(f"Not ready: {cells}, and it failed (see above). {cure}.")
    return paint_good(f"Ready: {cells}. In a notebook: %load_ext metalnb")


def _verdict(trial: EngineTrial) -> str:
    if not trial.works:
        return trial.problem.replace("\n", "\n    ")
    return (
        f"{_THREADS:,} threads, every value right: {trial.run_seconds * 1e3:.1f} ms "
        f"(compiled and first run: {trial.compile_seconds * 1e3:.0f} ms)"
    )


def main(*, json: bool = False) -> int:
    """Examine this machine and print the findings; return 0 if an engine works, else 1."""
    checkup = examine()
    if json:
        import json as writer

        print(writer.dumps(checkup.to_json(), indent=2))
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        text = write(checkup, color=color, plain=not _can_print("✓✗·"))
        print(text if _can_print(text) else text.encode("ascii", "replace").decode())
    return 0 if checkup.works else 1


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
