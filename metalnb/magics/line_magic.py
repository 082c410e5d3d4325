"""``%metal``: a table of subcommands, each a public function, about engines, kernels and a cell's compiled form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..cache import Usage, store
from ..cache_limit import size_limit
from ..call.kernel import Kernel
from ..display import Listing, Source, Table, nbytes
from ..engine import EngineList, engines, use
from ..program import Program
from ..timing.gpu_capture import capture
from ..timing.limits import Limits, limits
from .call_checks import MODES
from .option_values import unquote
from .session import Session

__all__ = ["COMMANDS", "LineMagics"]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its syntax, its description, and its function."""

    usage: str
    help: str
    run: Callable[[Session, str | None], Any]


def _engines(_session: Session, _word: str | None) -> EngineList:
    return engines()


def _limits(_session: Session, word: str | None) -> Limits:
    if word not in {None, "again"}:
        raise UsageError(f"%metal limits: unknown word {word!r}; write %metal limits or %metal limits again")
    return limits(again=word == "again")


def _use(_session: Session, name: str | None) -> EngineList:
    use(None if name in {None, "default"} else name)
    return engines()


def _kernels(session: Session, _word: str | None) -> Listing[Kernel]:
    kernels = session.kernels()
    rows = tuple(
        (name, ", ".join(p.name for p in k.signature.params), k.engine.name, k.card.summary)
        for name, k in kernels.items()
    )
    head = ("kernel", "arguments", "engine", "")
    return Listing(
        kernels, Table(head, rows, empty="no kernels yet: a %%metal cell binds them", code=frozenset({0, 1})),
    )  # fmt: skip


def _source(session: Session, name: str | None) -> Source:
    return Source(_program(session, name)[0].source)


def _lowered_source(session: Session, name: str | None) -> Source:
    program, names = _program(session, name)
    return Source("\n".join(map(program.lowered_text, names)))


def _program(session: Session, name: str | None) -> tuple[Program, list[str]]:
    """Return a kernel's program and name; without a name, the last program and the names of its kernels."""
    if name is not None:
        kernel = session.kernels().get(name)
        if kernel is None:
            raise UsageError(f"%metal source: no kernel {name!r}; there are: {', '.join(session.kernels()) or 'none'}")
        return kernel.program, [kernel.name]
    if session.last is None:
        raise UsageError("%metal source: no program yet: run a %%metal cell first")
    return session.last, list(session.last)


def _headers(session: Session, _word: str | None) -> Listing[Source]:
    rows = tuple((f'#include "{name}"', f"{len(text.strip().splitlines())}") for name, text in session.headers.items())
    empty = "no header cells: %%metal --header NAME keeps one"
    return Listing(session.texts, Table(("header", "lines"), rows, empty=empty, code=frozenset({0})))


def _cache(_session: Session, word: str | None) -> Listing[Usage]:
    if word not in {None, "clear"}:
        raise UsageError(f"%metal cache: unknown word {word!r}; write %metal cache or %metal cache clear")
    cache_store = store()
    usage = cache_store.clear() if word else cache_store.usage()
    rows = tuple((kind, f"{u.entries:,}", nbytes(u.nbytes)) for kind, u in usage.items())
    limit = size_limit()
    total = nbytes(sum(u.nbytes for u in usage.values()))
    size = f"{total} cleared" if word else f"{total} of at most {nbytes(limit)}" if limit else f"{total}, no limit"
    caption = f"{cache_store.root}: {size}"
    return Listing(usage, Table(("kind", "entries", "size"), rows, caption, empty="nothing is kept"))


def _check(session: Session, word: str | None) -> str:
    if word not in {None, *MODES}:
        raise UsageError(f"%metal check: unknown word {word!r}; write %metal check {'|'.join(MODES)}")
    session.checking = word or session.checking
    return session.checking


def _capture(session: Session, word: str | None) -> str:
    session.recording.close()
    if word == "end":
        return "in Xcode: open the .gputrace, then Replay; each dispatch shows its buffers and counters"
    path = session.recording.enter_context(capture(word or "metalnb.gputrace"))
    return f"recording to {path}, until %metal capture end"


COMMANDS = {
    "engines": Command("engines", "the engines that can run here, and what the others need", _engines),
    "use": Command("use NAME", "run on this engine from now on; `default` restores the default", _use),
    "limits": Command(
        "limits [again]", "the rates of this machine's memory and arithmetic; `again` repeats the measurement", _limits
    ),
    "kernels": Command("kernels", "the kernels that this notebook has bound", _kernels),
    "source": Command(
        "source [KERNEL]", "the last cell's text, or a kernel's; with --lowered what the compiler receives", _source
    ),
    "headers": Command("headers", "the header cells, by the name that #include takes", _headers),
    "check": Command(
        "check [on|off|first]", "check every call, none, or the first one of each version of a cell", _check
    ),
    "capture": Command("capture [FILE|end]", "record the GPU's commands for Xcode, until `end`", _capture),
    "cache": Command("cache [clear]", "where compiled kernels are kept, and how many; `clear` empties it", _cache),
}


def _help() -> str:
    width = max(len(c.usage) for c in COMMANDS.values())
    return "\n".join(f"%metal {c.usage.ljust(width)}  {c.help}" for c in COMMANDS.values())


@magics_class
class LineMagics(Magics):
    """The line magic."""

    shell: Any

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    @magic_arguments("metal")
    @argument("command", nargs="?", default="engines", help=f"one of {', '.join(COMMANDS)} (default: %(default)s)")
    @argument("word", nargs="?", type=unquote, help="the command's argument")
    @argument("--lowered", action="store_true", help="with source: the text passed to the compiler")
    @line_magic("metal")
    def metal(self, line: str) -> Any:
        """Show engines, kernels, source, header cells and the cache."""
        words = sorted(line.split(), key="--lowered".__eq__)  # argparse accepts no word after an option
        options = parse_argstring(self.metal, " ".join(words))
        command = COMMANDS.get(options.command)
        if command is None:
            raise UsageError(f"unknown command {options.command!r}. There are:\n{_help()}")
        if options.word is not None and " " not in command.usage:
            raise UsageError(f"%metal {command.usage} takes no further argument; got {options.word!r}")
        if options.lowered and command.run is not _source:
            raise UsageError("--lowered belongs to %metal source")
        if options.lowered:
            return _lowered_source(self.session, options.word)
        return command.run(self.session, options.word)

    metal.__doc__ = f"{metal.__doc__}\n{_help()}\n"
