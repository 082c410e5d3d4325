"""``%metal_time``, ``%metal_compare`` and ``%metal_profile``: measure calls, or count their operations."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..call.kernel import Dispatch, Kernel
from ..profiling.profile_call import profile
from ..profiling.profile_record import Profile
from ..timing.compare import Comparison, compare
from ..timing.measure import measure
from ..timing.records import Timing
from .line_calls import Call, evaluate_call, parse_call, split, string_spans
from .option_values import unquote
from .session import Session

__all__ = ["TimingMagics"]

_FLAGS = {"--cold"}  # options that take no value
_QUOTES = {"'", '"'}
_OPTION = re.compile(r"(--[\w-]*)(=?)")
_LATE = re.compile(r"(?<=\s)--(?:bytes|flops|cold|seconds|banks|device)(?=[\s=]|$)")


@magics_class
class TimingMagics(Magics):
    """The magics that measure."""

    shell: Any

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    @magic_arguments("%metal_time")
    @argument("--bytes", help="bytes moved by one dispatch: an expression, quoted if it has spaces (default: counted)")
    @argument("--flops", help="floating-point operations of one dispatch: likewise an expression")
    @argument("--cold", action="store_true", help="also measure with cold caches, which takes longer")
    @argument("call", nargs="?", help="a call of a kernel, with its arguments")
    @line_cell_magic("metal_time")
    def metal_time(self, line: str, cell: str | None = None) -> Timing:
        """Time a kernel's call, and compare it with what this machine can do.

            %metal_time saxpy(x, y, a=2.0)
            %metal_time --flops 2*x.size saxpy@1(x, y, a=2.0)
            %metal_time x @ y + 1

        saxpy@1 is the first kernel that a cell has bound to that name, saxpy@2 the next. The arguments, and everything
        in which the function is looked up, are evaluated once: for f(x).g() only g is timed. A kernel's bytes and
        operations are counted in a run before, unless --bytes or --flops states them. %%metal_time times the cell's
        statements by the wall clock, running them many times.
        """
        words, call = _split_options("%metal_time", line)
        options = parse_argstring(self.metal_time, words)
        counts = {name: self._count(name, getattr(options, name)) for name in ("bytes", "flops")}
        if cell is not None:
            if call:
                raise UsageError(f"%%metal_time: takes its options on the line, and the statements below; got {call!r}")
            return measure(self._statements(cell), cold=options.cold, **counts)
        timed = _bind(*self._evaluate("%metal_time", parse_call("%metal_time", call)))
        return measure(timed, cold=options.cold, counted=True, **counts)

    @magic_arguments("%metal_profile")
    @argument("--seconds", type=float, default=1.0, help="time limit for starting threadgroups (default: 1)")
    @argument("--banks", type=int, default=32, help="banks of threadgroup memory, each 4 bytes wide (default: 32)")
    @argument("--device", help="the GPU for the least times: M1 to M4, Pro, Max, H100 SXM, …; quoted if it has spaces")
    @argument("call", nargs="?", help="a call of a kernel, with its arguments")
    @line_magic("metal_profile")
    def metal_profile(self, line: str) -> Profile:
        """Count what a kernel's call costs a GPU, line by line.

            %metal_profile saxpy(x, y, a=2.0)
            %metal_profile --device "M4 Max" saxpy@1(x, y, a=2.0)

        It shows the source with figures for each line; a click on an access draws its 32 lanes and their positions in
        memory. The call runs on copies, and nothing is timed.
        """
        words, call = _split_options("%metal_profile", line)
        options = parse_argstring(self.metal_profile, words)
        dispatch = _bind(*self._evaluate("%metal_profile", parse_call("%metal_profile", call)))
        if not isinstance(dispatch, Dispatch):
            raise UsageError(f"%metal_profile: takes a call of a kernel; got {call!r}")
        device_option = {"device": unquote(options.device)} if options.device else {}
        return profile(dispatch, seconds=options.seconds, banks=options.banks, **device_option)

    @magic_arguments("%metal_compare")
    @argument("calls", nargs="?", help="two or more calls, separated by spaces")
    @line_magic("metal_compare")
    def metal_compare(self, line: str) -> Comparison:
        """Time calls alternately, and report which is the fastest, or that the difference is within noise.

            %metal_compare blur(image) blur_tiled(image)
            %metal_compare saxpy@1 saxpy@2(x, y, a=2.0)
            %metal_compare saxpy@cpu saxpy@cuda saxpy@1@cuda
            %metal_compare mine(X) mnb.softmax(X) scipy.special.softmax(x, 1) "torch.softmax(t, 1)"
            %metal_compare a @ b, mnb.matmul(a, b)

        saxpy@1 is the first kernel that a cell has bound to that name, and saxpy@cpu the latest on that engine. Each
        may be a Python expression, which is evaluated repeatedly if it is not a call; separate them by commas or quotes
        where it is unclear where one ends. If one is not a kernel, all are timed by the wall clock, and the kernels'
        times by their device's clock are shown as well. A kernel without arguments gets those of the others, or those
        of the last such magic with that kernel.
        """
        calls = [parse_call("%metal_compare", text) for text in split(line)]
        if len(calls) < 2:
            rule = "takes two calls or more, like a(x) b(x), or a(x), x + y"
            raise UsageError(f"%metal_compare: {rule}; got {len(calls)}: {line.strip()!r}")
        shared_arguments = next((c.arguments for c in calls if c.arguments is not None), None)
        jobs = [_bind(*self._evaluate("%metal_compare", call, shared_arguments)) for call in calls]
        names = [call.label for call in calls]
        return compare(jobs, names=names if len(set(names)) == len(names) else None)

    def _evaluate(
        self, magic: str, call: Call, shared_arguments: Any = None
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Evaluate a call; if it has no arguments, use those of another call."""
        arguments = call.arguments or shared_arguments or self.session.calls.get(call.name)
        if arguments is None:
            raise UsageError(f"{magic}: {call.text!r} has no arguments. Write them once: {call.label}(…)")
        try:
            result = evaluate_call(self.session, call, arguments)
        except NameError as error:
            raise UsageError(f"{magic}: {call.text!r}: {error}") from None
        self.session.calls[call.name] = arguments
        return result

    def _count(self, name: str, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return self.shell.ev(unquote(text))
        except Exception as error:
            raise UsageError(f"--{name} {text}: {type(error).__name__}: {error}") from error

    def _statements(self, cell: str) -> Callable[[], None]:
        """Return a cell's statements as a callable."""
        code = compile(self.shell.transform_cell(cell), "<%%metal_time>", "exec")
        namespace = self.shell.user_ns

        def cell_() -> None:
            exec(code, namespace)  # noqa: S102  (the user's own)

        cell_.__name__ = "cell"
        return cell_


def _bind(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Bind the callable to time to its arguments."""
    if isinstance(function, Kernel):
        return function.prepare(*args, **keywords)
    if not callable(function):
        raise UsageError(f"{type(function).__name__} is not a kernel, and cannot be called")
    return functools.partial(function, *args, **keywords)


def _split_options(magic: str, line: str) -> tuple[str, str]:
    """Separate the options from the call.

    Raises
    ------
    UsageError
        If an option comes after the call.
    """
    words: list[str] = []
    rest = line.strip()
    while match := _OPTION.match(rest):
        head, equals = match.groups()
        rest = rest[match.end() :]
        if equals or head not in _FLAGS:
            value, rest = _value(rest if equals else rest.lstrip())
            words += [f"{head}={value}"] if equals and value[:1] not in _QUOTES else [head, value]
        else:
            words.append(head)
        rest = rest.lstrip()
    spans = string_spans(rest)
    if late := next((m for m in _LATE.finditer(rest) if not any(m.start() in span for span in spans)), None):
        call, options = rest[: late.start()].rstrip(), rest[late.start() :]
        message = f"{magic}: options come before the call; got {options!r} after it"
        raise UsageError(f"{message}. Write {magic} {' '.join([*words, options])} {call}")
    return " ".join(words), rest


def _value(text: str) -> tuple[str, str]:
    """Split an option's value, in quotes or up to a space, from what follows."""
    end = text.find(text[0], 1) + 1 if text[:1] in _QUOTES else 0
    end = end or len(text.partition(" ")[0])
    return text[:end], text[end:]
