"""``%%metal``: a cell of Metal Shading Language."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..msl.libclang.author_warnings import at_the_text
from ..program import Program, compile
from .call_checks import guard
from .editor_lines import lines_above, move_below
from .option_values import evaluate_constants, parse_assignment, python_name, unquote
from .session import Header, Session

__all__ = ["CellMagics"]

_DEFAULT = {name: p.default for name, p in inspect.signature(compile).parameters.items()}


@magics_class
class CellMagics(Magics):
    """The cell magic."""

    shell: Any

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    @magic_arguments("%metal")
    @argument(
        "--engine", type=unquote, default=_DEFAULT["engine"],
        help="the engine to run on; %%metal engines lists them (default: the one in use)",
    )  # fmt: skip
    @argument(
        "--math", metavar="MODE", choices=("fast", "precise"), default=_DEFAULT["math"],
        help="fast lets the compiler reorder arithmetic; precise keeps IEEE 754, except a sum that one thread makes "
        "in a loop on engine cpu (default: %(default)s)",
    )  # fmt: skip
    @argument(
        "--constant", metavar="NAME=VALUE", type=parse_assignment, action="append", default=[],
        help="a function constant; the value is a Python expression and may use the notebook's names; repeatable",
    )  # fmt: skip
    @argument(
        "--msl", metavar="VERSION", type=unquote, default=_DEFAULT["msl"],
        help="the version of the language, 2.3 to 3.2, that the cell must conform to (default: the engine's newest)",
    )  # fmt: skip
    @argument("--name", type=python_name, help="also bind the program under this name")
    @argument(
        "--header", metavar="FILE", type=unquote,
        help='keep the cell for #include "FILE" in later cells; it needs no kernel, and is checked at once',
    )  # fmt: skip
    @argument("--save", metavar="PATH", type=unquote, help="write the cell to a .metal file once it has compiled")
    @argument(
        "--unchecked", action="store_true",
        help="skip the bounds checks, and let loops run without a way to stop them (engines cpu and cuda)",
    )  # fmt: skip
    @argument(
        "--check", metavar="REFERENCE", type=unquote, nargs="?", const="",
        help="check the first call: run it on copies with every access checked, and show what is wrong; with a NumPy "
        "function of the same arguments, also show where the outputs differ",
    )  # fmt: skip
    @argument("--quiet", action="store_true", help="show no card")
    @cell_magic("metal")
    def metal(self, line: str, cell: str) -> Program | Header | None:
        """Compile a cell of Metal Shading Language and bind each kernel in it as a Python callable.

        Line numbers are the editor's: %%metal is line 1.
        """
        options = parse_argstring(self.metal, line)
        token = at_the_text.set(True)
        try:
            return self._compile(options, cell)
        finally:
            at_the_text.reset(token)

    def _compile(self, options: Any, cell: str) -> Program | Header | None:
        common = {"math": options.math, "engine": options.engine, "msl": options.msl}
        if options.header and (options.name or options.constant):
            raise UsageError("--header keeps a text: --name and --constant belong to the cells that include it")
        if options.header and options.check is not None:
            raise UsageError("--check is for calls, and a header has no kernel: use it in cells that include it")
        text = move_below(cell, lines_above(self.shell, cell))
        if options.header:
            result: Program | Header = self.session.keep_header(options.header, text, **common)
        else:
            constants = evaluate_constants(self.shell, options.constant)
            program = result = compile(
                text, constants=constants, headers=self.session.headers,
                checked=_DEFAULT["checked"] and not options.unchecked, **common,
            )  # fmt: skip
            expected = self._evaluate_reference(options.check)
            earlier = {name: [*kernels] for name, kernels in self.session.versions.items()}
            guard(self.session, program, expected, requested=options.check is not None, earlier=earlier)
            self.session.compiled_here = self.shell.execution_count, program
            for note in self.session.bind(program, options.name):
                print(f"note: {note}")  # noqa: T201  (a value is shown by its card; this is about the notebook)
        if options.save:
            _save(options.save, cell)
        return None if options.quiet else result

    def _evaluate_reference(self, text: str | None) -> Any:
        if not text:
            return None
        try:
            return self.shell.ev(text)
        except Exception as error:
            message = f"--check {text}: {type(error).__name__}: {error}"
            raise UsageError(message) from error


def _save(path: str, text: str) -> None:
    try:
        Path(path).expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--save {path}: {error.strerror}") from error
