"""Compile through LLVM IR, for steps that clang lacks or runs in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from metalnb import cache

from ..clang import driver
from ..clang.driver import Refused
from ..clang.long_text import flags_for_length, with_functions
from ..unit import Unit
from . import toolchain
from .llvm_text import with_divisors

__all__ = ["assembled", "compiled", "texts", "written"]

_TEXT = ("-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm")


def texts(unit: Unit) -> Iterator[str]:
    """Yield the author's source of a unit: the needed parts of the cell and its header cells."""
    yield from unit.texts.values()


def compiled(
    unit: Unit, text: str, how: tuple[str, ...], check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile a source to an object file, with integer divisions that do not trap and bounded time for long kernels.

    Raises
    ------
    CompileError
    Refused
        With the reason that ``check`` finds in clang's output.
    """
    between = with_functions(with_divisors(written(unit, text, how).decode()))
    return assembled(between, how, unit, check)


def written(unit: Unit, text: str, how: tuple[str, ...]) -> bytes:
    """Return the unoptimised LLVM IR."""
    return driver.compiled(unit, text, toolchain.TARGET(), *how, *_TEXT)


def assembled(
    text: str, how: tuple[str, ...], unit: Unit, check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile LLVM IR with clang and these flags, or return the cached result.

    Raises
    ------
    CompileError
    Refused
        With the reason that ``check`` finds in clang's output.
    """
    flags = (*toolchain.TARGET().flags, *how, *flags_for_length(text))

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "in.ll").write_text(text, encoding="utf-8")
            command = [*driver.clang(), "-Wno-everything", *flags, "-x", "ir", "-c", "in.ll", "-o", "out"]
            failed, told = driver.run(command, folder, unit)
            if failed:
                raise Refused([driver.at_kernel(unit, f"clang cannot compile it: {told.strip()[-500:]}")])
            reason = check(told)
            if reason:
                raise Refused([driver.at_kernel(unit, reason)])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.version(), *flags), "cpu-text", build)
