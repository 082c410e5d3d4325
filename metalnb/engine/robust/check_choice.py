"""Choose the form of a kernel for a dispatch: the safe one with the fewest checks.

The first form, compiled with the kernel, checks only the accesses that no grid and sizes could make safe. A dispatch
uses this form if all other accesses are proven; otherwise it uses a form with more checks, compiled when first
needed. So a correct kernel runs as fast as an unchecked one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..llvm.instructions import IRModule
from ..process_locks import new_lock
from .kernel_analysis import Analysis, Proof
from .launch_facts import Grid, LaunchFacts, facts_of, sizes_of
from .rewriting.check_insertion import CheckedModule, Checks, insert_checks
from .rewriting.check_target import CheckTarget

__all__ = ["CheckChoice", "KernelChecks", "favorable_facts"]

_MAX_FORMS = 3  # forms of a kernel; the next one checks everything
_MAX_REMEMBERED = 256  # kinds of launches whose checks are remembered
_WIDE_BYTES = 1 << 31

_ScalarBytes = list[tuple[int, int, int, bytes]]


def favorable_facts(count: int) -> list[LaunchFacts]:
    """Return facts of favorable dispatches, which prove nearly every access that any dispatch can prove."""
    unit, sizes = (1, 1, 1), (1 << 24,) * count
    return [LaunchFacts(unit, unit, sizes, dict.fromkeys(range(count), number)) for number in (64, 1, 8)]


class CheckChoice:
    """The forms of a kernel, by their checks.

    Parameters
    ----------
    analysis : Analysis
    count : int
        The number of the kernel's arguments.

    Attributes
    ----------
    initial_checks : Checks
        The checks that the kernel is first compiled with.
    """

    def __init__(self, analysis: Analysis, count: int) -> None:
        self._analysis = analysis
        best = analysis.weakest_proof
        for facts in favorable_facts(count):
            if best.unproven or best.long_loops:
                best = min(best, analysis.prove(facts), key=lambda p: len(p.unproven) + len(p.long_loops))
        self.initial_checks = Checks(best.unproven, best.long_loops)
        self._forms = [self.initial_checks]
        self._choices: dict[tuple[Any, ...], list[tuple[_ScalarBytes, Checks]]] = {}

    def choose(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Checks:
        """Return the fewest checks that make a dispatch safe."""
        key = grid, threadgroup, sizes_of(arguments)
        for contents, checks in self._choices.get(key, ()):
            if all(arguments[number][first:end] == content for number, first, end, content in contents):
                return checks
        facts = facts_of(arguments, grid, threadgroup)
        proof = self._analysis.prove(facts)
        is_wide = max(*grid, *facts.sizes) >= _WIDE_BYTES
        checks = self._choose_form(Checks(proof.unproven, proof.long_loops, wide=is_wide))
        self._remember(key, proof, facts, checks)
        return checks

    def _choose_form(self, needed: Checks) -> Checks:
        candidates = [form for form in self._forms if form.covers(needed)]
        best = min(candidates, key=len, default=None)
        if best is not None and (len(best) <= len(needed) or len(self._forms) > 1):
            return best
        # The last form checks everything and serves all later dispatches.
        if best is None and len(self._forms) >= _MAX_FORMS:
            weakest = self._analysis.weakest_proof
            needed = Checks(weakest.unproven, weakest.long_loops, needed.wide)
        self._forms.append(needed)
        return needed

    def _remember(self, key: tuple[Any, ...], proof: Proof, facts: LaunchFacts, checks: Checks) -> None:
        if len(self._choices) >= _MAX_REMEMBERED:
            self._choices.clear()
        read = [(n, at, at + count, _bytes_of(facts.scalars[n], at, count)) for n, at, count in proof.dependencies]
        cases = self._choices.setdefault(key, [])
        if len(cases) < _MAX_REMEMBERED:
            cases.append((read, checks))


def _bytes_of(scalar: bytes | bytearray | int, at: int, count: int) -> bytes:
    return b"" if isinstance(scalar, int) else bytes(scalar[at : at + count])


class KernelChecks:
    """A kernel with its checks; each form is compiled when a dispatch first needs it.

    Parameters
    ----------
    module : IRModule
    analysis : Analysis
        The analysis of the module.
    target : CheckTarget

    Attributes
    ----------
    analysis : Analysis
    """

    def __init__(self, module: IRModule, analysis: Analysis, target: CheckTarget) -> None:
        self.analysis = analysis
        self._module, self._target = module, target
        self._choice = CheckChoice(analysis, target.argument_count)
        self._modules: dict[Checks, CheckedModule] = {}
        self._lock = new_lock()

    @property
    def initial_module(self) -> CheckedModule:
        """The kernel in its first form."""
        return self.module_with(self._choice.initial_checks)

    def for_dispatch(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule:
        """Return the kernel with the checks that a dispatch needs."""
        with self._lock:
            return self.module_with(self._choice.choose(arguments, grid, threadgroup))

    def module_with(self, checks: Checks) -> CheckedModule:
        """Return the kernel with the given checks."""
        if checks not in self._modules:
            self._modules[checks] = insert_checks(self._module, self.analysis, checks, self._target)
        return self._modules[checks]
