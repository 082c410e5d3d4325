"""State shared by a notebook's cells: header cells, the last program, and the names that they bind."""

from __future__ import annotations

import ast
import builtins
import contextlib
import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..call.kernel import Kernel
from ..display import Source
from ..library_includes import bundle_files
from ..plurals import quantity
from ..program import Program, compile
from ..program.recipe import header_name

__all__ = ["Header", "Session"]

_ATTRIBUTE = "_metalnb_session"  # the attribute of a shell that holds its session
_PROBE = '#include <metal_stdlib>\nusing namespace metal;\n#include "{}"\nkernel void metalnb_header_probe() {{}}\n'


@dataclass(frozen=True, slots=True)
class Header:
    """The text of a header cell, which later cells include by name."""

    name: str
    text: Source

    def __repr__(self) -> str:
        lines = quantity(len(self.text.strip().splitlines()), "line")
        return f'header "{self.name}", {lines}: #include "{self.name}" in a later cell'


class Session:
    """The state behind the magics of one IPython shell.

    Attributes
    ----------
    headers : dict of str to str
        The text of each header cell, after as many empty lines as the cell has lines above it.
    last : Program or None
        The program of the last cell that compiled.
    versions : dict of str to list of Kernel
        Every kernel that cells have bound to a name, oldest first: ``saxpy@1``.
    calls : dict of str to ast.Call
        The arguments with which a kernel of that name was last measured.
    checking : {"asked", "off", "first", "on"}
        The calls that are checked before they are made (see `call_checks`).
    recording : ExitStack
        Ends the recording that `%metal capture` began.
    compiled_here : (int, Program) or None
        The last cell's number and its program, which is shown below that cell without repeating the source.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.headers: dict[str, str] = {}
        self.last: Program | None = None
        self.versions: dict[str, list[Kernel]] = {}
        self.calls: dict[str, ast.Call] = {}
        self.checking = "asked"
        self.recording = contextlib.ExitStack()
        self.compiled_here: tuple[int, Program] | None = None

    @classmethod
    def of(cls, shell: Any) -> Self:
        """Return a shell's session, the same one if the extension is loaded again."""
        session = getattr(shell, _ATTRIBUTE, None)
        if not isinstance(session, cls):
            session = cls(shell)
            setattr(shell, _ATTRIBUTE, session)
        return session

    def keep_header(self, name: str, text: str, **options: Any) -> Header:
        """Check a header cell's source as a cell would include it, after the standard library, and keep it.

        Raises
        ------
        CompileError
            If the header does not compile; an existing header of that name is kept.
        ArgumentError
            If no header cell can have that name.
        """
        name = header_name(name)
        compile(_PROBE.format(name), headers={**self.headers, name: text}, name="header check", **options)
        self.headers[name] = text
        return Header(name, self.texts[name])

    @property
    def texts(self) -> dict[str, Source]:
        """The header cells as written, without the empty lines that keep line numbers right."""
        return {name: Source(text.lstrip("\n")) for name, text in self.headers.items()}

    def headers_for(self, text: str) -> dict[str, str]:
        """Return the header cells, and the package's own files that they or this text include."""
        return {**bundle_files((text, *self.headers.values())), **self.headers}

    def bind(self, program: Program, name: str | None = None) -> list[str]:
        """Bind a program's kernels in the user's namespace, and the program itself under ``name``.

        Returns
        -------
        list of str
            A line for each name that hid or replaced something, or could not be bound.
        """
        self.last = program
        for kernel_name, kernel in program.kernels.items():
            versions_of_kernel = self.versions.setdefault(kernel_name, [])
            if kernel not in versions_of_kernel:  # a cell that returns to an earlier source returns to its kernels
                versions_of_kernel.append(kernel)
        values: dict[str, Any] = {n: k for n, k in program.kernels.items() if _is_name(n)}
        call = f"as {name}[{{!r}}]" if name else "as program[{!r}] with %%metal --name program"
        notes = [f"kernel {n!r} is not a Python name: call it {call.format(n)}" for n in program if n not in values]
        notes += _hidden_name_notes("kernel", values, self.shell.user_ns)
        if name in values:
            notes.append(f"program {name!r} hides the kernel {name!r}: call it as {name}[{name!r}]")
        elif name:
            notes += _hidden_name_notes("program", {name: program}, self.shell.user_ns)
        self.shell.push({**values, name: program} if name else values)
        return notes

    def kernels(self) -> dict[str, Kernel]:
        """Return the kernels in the user's namespace, in the order in which they were bound."""
        return {n: k for n, k in self.shell.user_ns.items() if isinstance(k, Kernel) and not n.startswith("_")}


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _hidden_name_notes(kind: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> Iterator[str]:
    """Describe the user's names that binding these would hide."""
    for name, value in values.items():
        if name in namespace:
            hidden_value = namespace[name]
            if not isinstance(hidden_value, type(value)):
                yield f"{kind} {name!r} replaces the variable {name!r}, of type {type(hidden_value).__name__}"
        elif hasattr(builtins, name):
            yield f"{kind} {name!r} hides Python's own {name!r} in this notebook; `del {name}` brings it back"
