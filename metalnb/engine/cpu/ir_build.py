"""Compile through LLVM IR, for steps that clang lacks or runs in another order."""

from __future__ import annotations

from collections.abc import Callable

from metalnb import cache

from ..clang import driver
from ..clang.driver import BackendError
from ..clang.long_kernels import flags_for_length, limit_inlining
from ..unit import Unit
from . import toolchain
from .guarded_divisions import guard_divisions

__all__ = ["compile_ir", "compile_object", "write_ir"]

_TEXT = ("-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm")


def compile_object(
    unit: Unit, text: str, options: tuple[str, ...], check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile a source to an object file, with integer divisions that do not trap and bounded time for long kernels.

    Raises
    ------
    CompileError
    BackendError
        If clang's back end fails, or ``check`` finds a reason in its output.
    """
    ir = limit_inlining(guard_divisions(write_ir(unit, text, options).decode()))
    return compile_ir(ir, options, unit, check)


def write_ir(unit: Unit, text: str, options: tuple[str, ...]) -> bytes:
    """Return the unoptimized LLVM IR."""
    return driver.compile_source(unit, text, toolchain.host_target(), *options, *_TEXT)


def compile_ir(
    text: str, options: tuple[str, ...], unit: Unit, check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile LLVM IR with clang and these flags, or return the cached result.

    Raises
    ------
    CompileError
    BackendError
        If clang's back end fails, or ``check`` finds a reason in its output.
    """
    flags = (*toolchain.host_target().flags, *options, *flags_for_length(text))

    def build() -> bytes:
        with cache.store().scratch() as folder:
            (folder / "in.ll").write_text(text, encoding="utf-8")
            command = [*driver.clang_command(), "-Wno-everything", *flags, "-x", "ir", "-c", "in.ll", "-o", "out"]
            status, output = driver.run_clang(command, folder, unit)
            if status:
                message = f"clang cannot compile it: {output.strip()[-500:]}"
                raise BackendError([driver.kernel_diagnostic(unit, message)])
            reason = check(output)
            if reason:
                raise BackendError([driver.kernel_diagnostic(unit, reason)])
            return (folder / "out").read_bytes()

    return cache.store().make(cache.digest(text, driver.compiler_version(), *flags), "cpu-text", build)
