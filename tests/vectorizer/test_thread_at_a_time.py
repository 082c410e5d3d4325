"""Which kernels run one thread at a time, and how a kernel's card says so."""

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, ROW, engine_is_here, kernel

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.cpu.lanes.vector_build import machine, thread_text
from metalnb.engine.cpu.thread_form.thread_binary import ThreadBinary
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.llvm.llvm_types import UnsupportedIR
from metalnb.engine.vectorizer.not_vectorized import NotVectorized
from metalnb.engine.vectorizer.vectorize import vectorize

__all__ = ["engine_is_here"]

INTO_A_LOOP = """int k = int(x[i]);
    switch (k & 3) { case 0: do { o[i] += 1; case 1: o[i] += 2; case 2: o[i] *= 3; } while (--k > 0); }"""


@pytest.mark.parametrize(("body", "reason"), [
    ("float own[20000]; for (int k = 0; k < 20000; ++k) own[(k * 7 + i) % 20000] = k; o[i] = own[i];",
     "its own variables take 80000 bytes in each thread"),
    ('os_log_default.log("%f", x[i]); o[i] = 1;', "a call of metalnb_print"),
    (INTO_A_LOOP, "irreducible"),
])  # fmt: skip
def test_unvectorized_kernels_state_the_reason(body: str, reason: str) -> None:
    binary = engines.named("cpu").compile(kernel(body).unit)
    assert isinstance(binary, ThreadBinary)
    assert reason in binary.reason


def test_ir_that_the_vectorizer_cannot_read_runs_a_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def vectorize_form(*_given: object) -> None:
        raise UnsupportedIR("an unknown type: x86_amx")

    monkeypatch.setattr(vector_build, "vectorize_form", vectorize_form)
    doubling, out = kernel("o[i] = x[i] * 2;"), np.zeros(40, np.float32)
    binary = engines.named("cpu").compile(doubling.unit)
    assert isinstance(binary, ThreadBinary)
    assert binary.reason == "an unknown type: x86_amx"
    doubling(np.arange(40, dtype=np.float32), out, grid=40)
    assert out.tolist() == [2 * i for i in range(40)]


def test_integers_of_128_bits_are_not_vectorized() -> None:
    text = thread_text(kernel("o[i] = x[i];").unit)
    module = read_module(text.replace("  ret void", "  %wide = mul i128 3, 4\n  ret void", 1))
    with pytest.raises(NotVectorized, match="an integer of 128 bits"):
        vectorize(module, ROW, machine())


def test_calls_in_code_that_rarely_runs_are_inlined() -> None:
    both = "max(ushort4(k, i, 3, k), ushort4(i, 4, k, 9)) + max(ushort4(i, k, 7, i), ushort4(2, i, 1, k))"
    rare = kernel(f"ushort k = x[i]; if (__builtin_expect(k == 7, 0)) {{ ushort4 v = {both}; k = v.x + v.w; }} "
                  "o[i] = k;")
    assert not isinstance(engines.named("cpu").compile(rare.unit), ThreadBinary)
    out = np.zeros(40, np.float32)
    rare(np.arange(40, dtype=np.float32), out, grid=40)
    expected = np.arange(40)
    expected[7] = (max(7, 7) + max(7, 2)) + (max(7, 9) + max(7, 7))
    assert np.array_equal(out, expected)


def test_a_card_says_how_a_kernel_runs() -> None:
    program = mnb.compile(f"""{HEAD}
        float pick(device const float* x, uint k) {{
            return x[k * 7]; }}
        kernel void f(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {{
            o[i] = pick(x, i) +
                x[uint(x[i])]; }}
        kernel void g(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {{
            {INTO_A_LOOP} }}""", engine="cpu")  # fmt: skip
    x, out = np.ones(224, np.float32), np.zeros(32, np.float32)
    for name, told in {
        "f": [("runs", "32 threads in vector registers"), ("gathers", "2: line 6, line 9")],
        "g": [("runs", "a thread at a time: its control flow is irreducible: a loop with two entries, line 12")],
    }.items():
        assert not {label for label, _ in program[name].card.facts} & {"runs", "gathers"}  # nothing is compiled yet
        program[name](x, out, grid=32)
        assert program[name].card.facts == told


def test_irreducible_control_flow_computes_correctly() -> None:
    x = np.arange(40, dtype=np.float32) % 9
    out = np.zeros(40, np.float32)
    kernel(INTO_A_LOOP)(x, out, grid=40)

    def ran(k: int) -> np.float32:
        o, at = np.float32(0), k & 3
        if at == 3:
            return o
        while True:
            o = np.float32(o + 1) if at == 0 else o
            o = np.float32(o + 2) if at <= 1 else o
            o, at, k = np.float32(o * 3), 0, k - 1
            if k <= 0:
                return o

    assert out.tolist() == [ran(int(k)) for k in x]
