"""Check calls before they are made, as ``%%metal --check`` and ``%metal check`` request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from ..call.kernel import Kernel
from ..errors import EngineUnavailable, KernelFault
from ..plurals import quantity
from ..program import Program
from ..validation import Validation, sentence, validate
from .session import Session

__all__ = ["MODES", "guard"]

MODES = ("on", "off", "first")
_SECONDS = 2.0
_UNSAFE = frozenset({"beyond", "barrier", "endless", "reported"})  # the call is not made: it could end the process


def guard(
    session: Session, program: Program, expected: Any, *, requested: bool, earlier: Mapping[str, list[Kernel]]
) -> None:
    """Check the calls of a cell's kernels.

    Parameters
    ----------
    session : Session
        Its ``checking`` selects the calls: ``"asked"``, the first call of each cell that requests the check;
        ``"first"``, the first call of each new version of a cell; ``"on"``, every call; ``"off"``, none.
    program : Program
    expected : callable, array or mapping, optional
        As for `validate`; for a cell with several kernels, a mapping by kernel.
    requested : bool
        Whether the cell itself requests the check.
    earlier : mapping of str to list of Kernel
        The kernels of earlier cells.

    Raises
    ------
    UsageError
        If a cell has several kernels and the expected values do not say whose they are.
    """
    if session.checking == "off" or (session.checking == "asked" and not requested):
        return
    if expected is not None and len(program) > 1 and not (isinstance(expected, Mapping) and {*expected} <= {*program}):
        names = ", ".join(program)
        raise UsageError(f"--check: the cell has {len(program)} kernels ({names}): pass a dict of references by kernel")
    for name, kernel in program.kernels.items():
        reference = expected.get(name) if isinstance(expected, Mapping) and {*expected} <= {*program} else expected
        if session.checking == "on" or requested or kernel not in earlier.get(name, []):
            kernel.before_call = _call_checker(session, reference)


def _call_checker(session: Session, expected: Any) -> Callable[..., None]:
    def check(kernel: Kernel, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if session.checking == "off":
            kernel.before_call = None
            return
        try:
            report = validate(kernel, *args, expected=expected, seconds=_SECONDS, device=True, **keywords)
        except EngineUnavailable as error:
            print(f"note: {kernel.signature.name} is not checked: {error}")  # noqa: T201  (of the notebook's own state)
            kernel.before_call = None
            return
        _show(report)
        if session.checking != "on":
            kernel.before_call = None

    return check


def _show(report: Validation) -> None:
    if report.ok and not report.findings and not report.left_out:
        outputs = f", {', '.join(report.compared)} as expected" if report.compared else ""
        basis = f"by {report.by}" if report.by else f"in {quantity(report.accesses, 'access', 'accesses')}"
        print(f"note: {report.kernel}: no fault {basis}{outputs}")  # noqa: T201
        return
    display(report)  # type: ignore[no-untyped-call]
    unsafe = next((f for f in report.findings if f.kind in _UNSAFE and not f.case), None)
    if unsafe is not None:
        cure = "The call was not made. To make it without a check: %metal check off."
        message = f"{report.kernel}: {sentence(unsafe)} {cure}"
        raise KernelFault(message)
