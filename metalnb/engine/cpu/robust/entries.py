"""The compiled forms of one way to enter a kernel: with more or fewer checks, and which of them a dispatch needs.

The first form is compiled with the kernel: it checks what no grid and no sizes could make right, and trusts the rest.
A dispatch for which the host can prove that rest runs it; one that may be wrong gets a form with more checks, compiled
when it is first needed. So a kernel that is right is as fast as one that is never checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..spirv.module import parsed
from ..spirv_forms import FORMS
from ..spirv_forms import Form as SpirvForm
from .module_analysis import Analysis
from .proofs.launch_facts import Grid, LaunchFacts, facts_of, sizes_of

__all__ = ["CheckedForm", "Entries"]

_MOST = 3  # forms, before one is made that trusts nothing
_KEPT = 256  # kinds of launches remembered


class CheckedForm:
    """A kernel with some of its accesses checked.

    Attributes
    ----------
    wrong : frozenset of int
        The accesses that are checked.
    stops : frozenset of int
        The heads of the loops that can be stopped.
    analysis : Analysis or None
        None for a module that is not understood: nothing of it is checked.
    built : Built
        OpenCL's kernel, and its stack.
    text : str
    shape : metalnb.engine.cpu.spirv_forms.Form
        What the module was compiled from, and in which form.
    printed : str
        clang's intermediate code with lines, once a fault has been explained.
    """

    __slots__ = ("_addresses", "_facts", "_wide", "analysis", "built", "printed", "shape", "stops", "text", "wrong")

    def __init__(self, facts: Sequence[LaunchFacts], *, wide: bool = True) -> None:
        self._facts, self._wide = facts, wide
        self._addresses = False
        self.analysis: Analysis | None = None
        self.wrong: frozenset[int] = frozenset()
        self.stops: frozenset[int] = frozenset()
        self.built: Any = None
        self.text = self.printed = ""
        self.shape: SpirvForm = FORMS[0]

    def guarded(self, code: bytes, text: str, shape: SpirvForm) -> bytes:
        """Return a module with its checks; called for each form of the ladder in which the kernel is tried."""
        self.text, self.shape = text, shape
        if parsed(code) is None:
            self.analysis, self.wrong, self.stops = None, frozenset(), frozenset()
            return code
        self.analysis = analysis = Analysis(code)
        best = analysis.everything
        for facts in self._facts:
            if best.wrong or best.stops:
                best = min(best, analysis.proof(facts), key=lambda p: len(p.wrong) + len(p.stops))
        self.wrong, self.stops = best.wrong, best.stops
        self._addresses = any(analysis.anywhere(n) for n in self.wrong)
        return analysis.checked(self.wrong, self.stops, wide=self._wide) if self.watched else code

    @property
    def addresses(self) -> bool:
        """Whether the table has to tell where the buffers are: some pointer may be of several."""
        return self._addresses

    @property
    def watched(self) -> bool:
        """Whether the kernel takes a table as its last argument."""
        return bool(self.wrong or self.stops)


class Entries:
    """All forms of one way to enter a kernel.

    Parameters
    ----------
    build : callable
        Compiles a form: returns it as `Built`, after a call of the form's ``guarded``.
    hopeful : sequence of LaunchFacts
        Of dispatches that leave nothing to be desired.
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """

    def __init__(
        self, build: Callable[[CheckedForm], Any], hopeful: Sequence[LaunchFacts], *, wide: bool = True,
    ) -> None:  # fmt: skip
        self._build, self._wide = build, wide
        self._forms: list[CheckedForm] = []
        self._known: dict[tuple[Any, ...], list[tuple[list[tuple[int, int, int, bytes]], CheckedForm]]] = {}
        self.first = self._made(hopeful)

    def _made(self, facts: Sequence[LaunchFacts]) -> CheckedForm:
        form = CheckedForm(facts, wide=self._wide)
        form.built = self._build(form)
        self._forms.append(form)
        return form

    def form_for(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedForm:
        """Return the form with the fewest checks that is right for a dispatch."""
        key = grid, threadgroup, sizes_of(arguments)
        for read, form in self._known.get(key, ()):
            for number, first, end, was in read:
                if arguments[number][first:end] != was:
                    break
            else:
                return form
        facts = facts_of(arguments, grid, threadgroup)
        form, depends = self._chosen(facts)
        if len(self._known) >= _KEPT:
            self._known.clear()
        read = [(n, at, at + count, bytes(facts.scalars[n][at : at + count])) for n, at, count in depends]
        cases = self._known.setdefault(key, [])
        if len(cases) < _KEPT:
            cases.append((read, form))
        return form

    def _chosen(self, facts: LaunchFacts) -> tuple[CheckedForm, set[tuple[int, int, int]]]:
        depends: set[tuple[int, int, int]] = set()
        fitting, least = [], 0
        for form in self._forms:
            if form.analysis is None:
                return form, depends
            proof = form.analysis.proof(facts)
            depends.update(proof.read)
            if proof.wrong <= form.wrong and proof.stops <= form.stops:
                fitting.append(form)
                least = len(proof.wrong) + len(proof.stops)
        best = min(fitting, key=_checks, default=None)
        if best is None:
            best = self._made([facts] if len(self._forms) < _MOST else [])
        elif _checks(best) > least and len(self._forms) == 1:  # the hope was too small
            best = self._made([facts])
        return best, depends


def _checks(form: CheckedForm) -> int:
    return len(form.wrong) + len(form.stops)
