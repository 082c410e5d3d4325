"""Record the dispatches of the library's ops, of the real kernels in tests/kernels, and of the notebooks."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import metalnb as mnb
from metalnb.engine.staging import binding_of, copy_to_host
from metalnb.library_kernels import op_table
from metalnb.library_kernels.samples.samples_by_op import bench_of

__all__ = ["PARTS", "Choice", "Dispatched"]

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ("01_first_kernel", "02_memory_and_throughput", "03_reductions", "04_tiling", "07_debugging_a_kernel")


_KEPT_BYTES = 1 << 26  # bytes of an argument whose contents are kept


class Dispatched(NamedTuple):
    """A dispatch as the engine received it.

    Attributes
    ----------
    engine : Engine, optional
        What it ran on, which `contents` and `restore` need.
    before : sequence of (bytes or None)
        The contents of each argument; None for a very large one, or one that nothing writes to. A kernel that moves its
        own offsets cannot run again without them.
    """

    source: str
    family: str
    binary: Any
    arguments: list[Any]
    grid: Any
    threadgroup: Any
    engine: Any = None
    before: Sequence[bytes | None] = ()

    def contents(self) -> list[bytes | None]:
        """Return the arguments' current contents, as in `before`."""
        return [_contents(self.engine, argument) for argument in self.arguments]

    def restore(self) -> None:
        """Restore the arguments' contents."""
        for argument, contents in zip(self.arguments, self.before, strict=False):
            if contents is None:
                continue
            data, binding = np.frombuffer(contents, np.uint8), binding_of(argument)
            if binding is None:
                argument.reshape(-1).view(np.uint8)[:] = data
            else:
                self.engine.copy_in(binding.memory, binding.offset, data)


def _contents(engine: Any, argument: Any) -> bytes | None:
    if not isinstance(argument, np.ndarray) or not 0 < argument.nbytes <= _KEPT_BYTES or not argument.flags.writeable:
        return None
    return copy_to_host(engine, argument).tobytes() if argument.flags.c_contiguous else None


def _host_value(engine: Any, argument: Any) -> bytearray:
    """Return the bytes of a single value that is passed by reference, wherever it is."""
    return bytearray(copy_to_host(engine, np.asarray(argument)).tobytes())


@contextlib.contextmanager
def recorded(engine: Any, source: str, family: str, into: list[Dispatched]) -> Iterator[None]:
    """Record the dispatches started in this context: each kernel once for each grid."""
    start, known_kernels = engine.start, set()

    def noting(binary: Any, arguments: Any, grid: Any, threadgroup: Any) -> Any:
        key = binary.unit.signature.name, grid
        if key not in known_kernels:
            known_kernels.add(key)
            plain = [getattr(a, "mem", a) for a in arguments]
            arguments = [  # a call of a cell's kernel packs a single value passed by reference, so the host knows it
                _host_value(engine, a) if p.reference and p.space == "constant" and a is not None else a
                for p, a in zip(binary.unit.signature.params, plain, strict=True)
            ]
            record = Dispatched(source, family, binary, arguments, grid, threadgroup, engine)
            into.append(record._replace(before=record.contents()))
        return start(binary, arguments, grid, threadgroup)

    engine.start = noting
    try:
        yield
    finally:
        del engine.start


class Choice(NamedTuple):
    """A choice of ops and kernels: by name, or the K-th of N parts of all."""

    names: list[str]
    share: tuple[int, int]

    def has(self, number: int, name: str) -> bool:
        """Return whether a name is to be measured."""
        return name in self.names if self.names else number % self.share[1] == self.share[0] - 1


def library(engine: Any, n: int, choice: Choice) -> Iterator[Dispatched]:
    """Yield the dispatches of every op."""
    for number, op in enumerate(op_table.ops().values()):
        bench = bench_of(op)
        if bench is not None and choice.has(number, op.name):
            sample = bench(np.random.default_rng(number), n)
            records: list[Dispatched] = []
            mnb.use(engine.name)
            args = [mnb.asarray(a, copy=True) if isinstance(a, np.ndarray) else a for a in sample.args]
            with recorded(engine, op.name, op.row.family, records):
                op(*args, **sample.options)
                mnb.synchronize()
            yield from records


def whole_kernels(engine: Any, choice: Choice) -> Iterator[Dispatched]:
    """Yield the dispatches of the kernels in tests/kernels, at their largest sizes."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kernels import arrays, images, integers, linear, neural, ordering, physics
    from kernels.case import Bench

    files = (linear, neural, ordering, arrays, images, integers, physics)
    for number, case in enumerate(case for file in files for case in file.table.cases):
        if choice.has(number, case.name):
            records: list[Dispatched] = []
            with recorded(engine, case.name, "kernel", records), contextlib.suppress(ImportError):
                case.run(Bench(case.name, engine.name, np.random.default_rng(2)), **case.sizes[-1])
            yield from records


def notebooks(engine: Any, choice: Choice) -> Iterator[Dispatched]:
    """Run the notebooks cell by cell; yield their dispatches."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    for name in (name for number, name in enumerate(NOTEBOOKS) if choice.has(number, name)):
        records: list[Dispatched] = []
        book = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
        with recorded(engine, name, "notebook", records):
            for cell in book["cells"]:
                if cell["cell_type"] == "code":
                    quiet = io.StringIO()
                    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                        shell.run_cell("".join(cell["source"]), silent=True)
        yield from records


PARTS = {"library": library, "kernels": whole_kernels, "notebooks": notebooks}
