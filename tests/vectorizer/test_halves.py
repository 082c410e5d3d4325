"""Functions of halves in vector code, on machines without arithmetic on halves."""

import platform

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here

import metalnb as mnb
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.vectorizer.simd_forms import form_for

__all__ = ["engine_is_here"]

FUNCTIONS = {
    "max(x[i], z[i])": np.fmax, "min(x[i], z[i])": np.fmin, "floor(x[i])": lambda x, _: np.floor(x),
    "ceil(x[i])": lambda x, _: np.ceil(x), "trunc(x[i])": lambda x, _: np.trunc(x),
    "rint(x[i])": lambda x, _: np.rint(x), "sqrt(x[i])": lambda x, _: np.sqrt(x),
    "clamp(x[i], 0.0h, 1.0h)": lambda x, _: np.fmin(np.fmax(x, 0), 1),
    "round(x[i])": lambda x, _: np.copysign(np.floor(np.abs(x) + 0.5), x),
}  # fmt: skip


def _target(march: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if march != "native" and platform.machine().lower() not in {"x86_64", "amd64"}:
        pytest.skip("instruction sets of x86-64")
    flags = tuple(f"-march={march}" if f.startswith("-march=") else f for f in toolchain.flags())
    monkeypatch.setattr(toolchain, "flags", lambda: flags)


def _kernel(function: str) -> mnb.Kernel:
    return mnb.compile(f"""{HEAD}kernel void f(device const half* x, device const half* z, device half* o,
        uint i [[thread_position_in_grid]]) {{ o[i] = {function}; }}""", engine="cpu", math="precise").f  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("march", ["native", "x86-64-v3"])
def test_functions_are_exact_for_every_half(function: str, march: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _target(march, monkeypatch)
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    z = np.random.default_rng(4).permutation(x)
    out = np.zeros_like(x)
    _kernel(function)(x, z, out, grid=len(x))
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[function](x.astype(np.float32), z.astype(np.float32)).astype(np.float16)
    zeros = (out == 0) & (expected == 0)  # for max and min, either sign
    assert np.array_equal(np.where(zeros, 0, out), np.where(zeros, 0, expected), equal_nan=True)


@pytest.mark.parametrize("function", [*FUNCTIONS, "fma(x[i], z[i], x[i])"])
@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v3"])
def test_vector_code_calls_no_library_function(function: str, march: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _target(march, monkeypatch)
    unit = _kernel(function).unit
    made = vector_build.vectorize_form(
        read_module(vector_build.thread_text(unit)), form_for((64, 1, 1), (32, 1, 1), simd=False)
    )  # fmt: skip
    flags = tuple(flag for flag in toolchain.flags() if flag != "-O3" and not flag.startswith("-D"))
    text = vector_build._compile_text(made.text, (*flags, *vector_build._SECOND, "-S"), unit).decode()
    assert "metalnb_threads" in text
    assert not [line for line in text.splitlines() if "call" in line.split("#")[0] and "@PLT" in line]

