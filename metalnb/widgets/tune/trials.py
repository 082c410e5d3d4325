"""The configurations of a sweep: every threadgroup with every combination of constants."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import Any

from metalnb.call.grids import MAX_THREADS, check_threadgroup
from metalnb.call.kernel import Kernel
from metalnb.call.packing import check_constant
from metalnb.errors import ArgumentError, MetalnbError
from metalnb.timing.records import Timing

from ..bound_call import BoundCall
from ..threadgroup_choices import all_groups

__all__ = ["Trial", "failure", "order", "resolve", "trials"]

_MAX_CONFIGURATIONS = 4096
_USUAL = 256  # threads: threadgroups of about this size are tried first


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration and its result.

    Attributes
    ----------
    threadgroup : tuple of int
    constants : mapping of str to value
        The swept function constants.
    timing : Timing or None
        None if it has not run, or failed.
    error : str
        Why it was rejected, or failed.
    once : bool
        Whether it was abandoned after one run, far slower than the best; `timing` is that run's.
    engine : str
        The engine that it is tried on; empty if only the kernel's own is tried.
    left_out : bool
        Whether it was skipped because others on its engine were far slower than the best.
    launch : mapping of str to value
        The parts of the launch that depend on the constants: ``grid``, ``shapes``, ``threadgroup_memory``.
    """

    threadgroup: tuple[int, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    timing: Timing | None = None
    error: str = ""
    once: bool = False
    engine: str = ""
    left_out: bool = False
    launch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """The median time of a dispatch."""
        return None if self.timing is None else self.timing.median


def trials(
    call: BoundCall, groups: Any, constants: Mapping[str, Any], engines: Sequence[str] = ("",)
) -> list[Trial]:
    """Return the configurations: every threadgroup with every combination of constants, on each engine.

    Parameters
    ----------
    call : BoundCall
    groups : sequence, callable or None
        Threadgroups, or a function of the constants that returns one; None for those that fit the grid.
    constants : mapping of str to sequence
    engines : sequence of str
        The kernel's own first; for a single engine the name is empty.

    Raises
    ------
    ArgumentError, LaunchError
        For an impossible configuration.
    """
    signature = call.kernel.signature
    declared = {c.name: c for c in call.kernel.reflection.constants}
    for name, values in constants.items():
        if name not in declared:
            names = ", ".join(declared) or "none"
            raise ArgumentError(f"tune: {signature.name}: the cell has no function constant {name!r}; it has: {names}.")
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise ArgumentError(f"tune: constants[{name!r}] is a list of values to try; got {values!r}.")
    if groups is None:
        # A launch by number of threadgroups: any size fits, so do not limit sizes by the grid.
        x, y, z = call.grid if call.groups is None else (n * MAX_THREADS if n > 1 else n for n in call.grid)
        groups = all_groups(signature, (x, y, z))
    elif not callable(groups) and (isinstance(groups, (str, bytes)) or not isinstance(groups, Sequence) or not groups):
        raise ArgumentError(f"tune: threadgroup is a list of threadgroups to try; got {groups!r}.")
    count = math.prod(map(len, constants.values())) * len(engines) * (1 if callable(groups) else len(groups))
    if count > _MAX_CONFIGURATIONS:
        raise ArgumentError(f"tune: {count:,} configurations are too many; the limit is {_MAX_CONFIGURATIONS:,}.")
    for name, values in constants.items():
        for value in values:
            check_constant(declared[name], value)
    combinations = list(_combinations(constants))
    if callable(groups):
        per_constants = [_trial_of(call, combination, groups) for combination in combinations]
        return [replace(trial, engine=engine) for engine in engines for trial in per_constants]
    configurations = itertools.product(engines, combinations, (_group(g) for g in groups))
    candidates = (Trial(group, combination, engine=engine) for engine, combination, group in configurations)
    return [_check_threadgroup(trial, call) for trial in candidates]


def order(configurations: Sequence[Trial], *, usual_first: bool) -> list[int]:
    """Return the order in which to try configurations, by index: engine after engine, the kernel's own first.

    With ``usual_first`` those of about 256 threads go before the others; on another engine they always do, since it may
    be given up after a few.
    """
    kernel_engine = configurations[0].engine if configurations else ""
    engines = list(dict.fromkeys(trial.engine for trial in configurations))

    def key(index: int) -> tuple[int, float]:
        trial = configurations[index]
        usual = usual_first or trial.engine != kernel_engine
        return engines.index(trial.engine), _unusual(trial.threadgroup) if usual else 0.0

    return sorted(range(len(configurations)), key=key)


def resolve(kernel: Kernel, chosen_constants: Mapping[str, Any], value: Any) -> Any:
    """Evaluate a launch option that is a function, passing it the constants that its parameters name.

    A function with ``**`` receives all constants.
    """
    if not callable(value):
        return value
    constants = {**kernel.program.constants, **chosen_constants}
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # a builtin
        problem = "the function for a launch option must have named parameters"
        raise ArgumentError(f"tune: {kernel.signature.name}: {problem}; got {value!r}. Pass a lambda.") from None
    names = [p.name for p in parameters if p.kind is not Parameter.VAR_KEYWORD]
    missing = [name for name in names if name not in constants]
    if missing:
        have = ", ".join(constants) or "none"
        problem = f"the function for a launch option has a parameter {missing[0]!r}, which is not a constant"
        raise ArgumentError(f"tune: {kernel.signature.name}: {problem}; the constants are: {have}.")
    return value(**constants if len(names) < len(parameters) else {name: constants[name] for name in names})


def failure(error: Exception) -> str:
    """Return why a configuration was rejected; may span several lines."""
    return str(error) if isinstance(error, MetalnbError) else f"{type(error).__name__}: {error}"


def _trial_of(call: BoundCall, constants: Mapping[str, Any], groups: Callable[..., Any]) -> Trial:
    """Return the configuration of some constants; one without a threadgroup is listed as rejected."""
    try:
        return _check_threadgroup(Trial(_group(resolve(call.kernel, constants, groups)), constants), call)
    except Exception as error:  # noqa: BLE001  (the author's own function, of these constants)
        return Trial((), constants, error=failure(error))


def _unusual(threadgroup: tuple[int, ...]) -> float:
    """Return how far a threadgroup is from the usual number of threads, in powers of two."""
    return abs(math.log2(max(1, math.prod(threadgroup)) / _USUAL))


def _combinations(constants: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*constants.values()):
        yield dict(zip(constants, values, strict=True))


def _group(extents: Any) -> tuple[int, ...]:
    return tuple(extents) if isinstance(extents, Sequence) and not isinstance(extents, str) else (extents,)


def _check_threadgroup(trial: Trial, call: BoundCall) -> Trial:
    """Reject a value that is not a threadgroup; one that is too large is listed as a failure."""
    group: tuple[Any, ...] = trial.threadgroup
    if not all(type(n) is int and n > 0 for n in group):
        check_threadgroup(call.kernel.signature, group, call.grid)  # raises
    return trial
