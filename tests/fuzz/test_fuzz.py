"""Random kernels on the engine against the host: a few of those in ``python tests/fuzz/run.py --count 20000``."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import Any

import pytest

from fuzz import trial
from fuzz.host_text import host
from fuzz.metal_text import metal
from fuzz.programs import ARMS, PLANAR, STEPPED, SYNCHRONIZING, generate
from fuzz.run import BATCH, outcomes_of
from fuzz.shrink import shrink, size, variants, well_formed
from fuzz.tree import Program, Stmt, const, statements
from metalnb.engine.robust.proofs.condition_ranges import ConditionRanges

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the host's build is for x86-64")


# AVX-512 where the machine has it, AVX2, SSE4.
MARCHES = ("native", "x86-64-v3", "x86-64-v2")
# One program of each kind per instruction set, each compiled in a second or two; campaigns run the long ones.
SEEDS = (
    (8_000, 830_000, ARMS, STEPPED, PLANAR), (8_001, 830_001, ARMS + 1, STEPPED + 1, PLANAR + 2),
    (8_005, 830_003, ARMS + 2, STEPPED + 2, PLANAR + 5),
)  # fmt: skip


@on_x86
@pytest.mark.long(every=3)  # The processor's own instruction set is first; the campaigns run kernels on each
@pytest.mark.parametrize("place", range(len(MARCHES)), ids=MARCHES)
def test_a_random_kernel_of_each_kind_computes_as_on_the_host(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each instruction set gets a different kernel."""
    monkeypatch.setenv("METALNB_MARCH", MARCHES[place])
    assert [o for o in outcomes_of(SEEDS[place], "cpu") if o[1] != "same"] == []


@on_x86
@pytest.mark.long  # One program of each kind is run by the test above
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", [ARMS, STEPPED, PLANAR])
def test_more_random_kernels_of_each_kind_compute_as_on_the_host(first: int) -> None:
    """Arms that call the same function; reductions by known steps; two dimensions, quads, matrices."""
    assert [o for o in outcomes_of(range(first, first + BATCH), "cpu") if o[1] != "same"] == []


# 120 programs on each instruction set, each compiled in 1.5 s on one core. Campaigns use run.py.
IN_LANES = (*range(8_000, 8_060, BATCH), *range(830_000, 830_060, BATCH))


@on_x86
@pytest.mark.long  # One program of each kind is run by the test above
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("first", IN_LANES)
def test_random_kernels_in_vector_registers_compute_as_on_the_host(
    first: int, march: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one fails, reduce it by ``python tests/fuzz/run.py --shrink SEED``."""
    monkeypatch.setenv("METALNB_MARCH", march)
    assert [o for o in outcomes_of(range(first, first + BATCH), "cpu") if o[1] != "same"] == []


# Each was once wrong in vector registers; tests/vectorizer/test_past_miscompiles.py tests the causes.
WRONG_IN_LANES = (5087, 5102, 5117, 5142, 5198, 5259, 5344, 830_009, 830_059, 40_000_253)


@on_x86
@pytest.mark.long  # test_past_miscompiles tests what each showed
@pytest.mark.timeout(1200)
def test_seeds_that_once_failed_compute_as_on_the_host() -> None:
    assert [o for o in outcomes_of(WRONG_IN_LANES, "cpu") if o[1] != "same"] == []


@on_x86
def test_proofs_of_deep_nests_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Following its loops and conditions once took minutes, and the kernel was taken for an endless one."""
    asked = 0
    narrow = ConditionRanges._narrow

    def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return narrow(*given)

    monkeypatch.setattr(ConditionRanges, "_narrow", counted)
    assert next(trial.batch([generate(220_006)])).kind == "same"
    assert 0 < asked < 100_000  # 606,568 once


@on_x86
def test_a_difference_is_found() -> None:
    """The comparison can fail: the host runs a different program from the engine's."""
    program = next(p for p in map(generate, range(100)) if not p.together)
    other = program.with_body((*program.body, Stmt("store", (const("uint", "0"), const("uint", "123456789")))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "host", lambda _, name: host(other, name))
        assert next(trial.batch([program])).kind == "different"


@pytest.mark.parametrize("seed", [first + i for first in (0, SYNCHRONIZING, ARMS, STEPPED, PLANAR) for i in range(20)])
def test_programs_are_reproducible_and_well_formed(seed: int) -> None:
    program = generate(seed)
    assert program == generate(seed)
    assert well_formed(program)
    assert metal(program, "k") == metal(generate(seed), "k")


def test_programs_use_every_construct() -> None:
    """In 200 programs of each kind, every kind of statement and expression occurs."""
    text = "".join(metal(generate(seed), "k") for seed in range(200))
    wider = "".join(metal(generate(seed), "k") for seed in range(SYNCHRONIZING, SYNCHRONIZING + 200))
    words = (
        "for (", "while (", "do {", "switch (", "break;", "continue;", "return", "threadgroup_barrier", "simd_sum",
        "simd_ballot", "simd_shuffle", "simd_prefix_exclusive_sum", "half", "float", "ulong", "char", "uchar3",
        "float4", "median3", "popcount", "NAN", "INFINITY", "1.0e-40f", " % ", " / ", "~", "thread ", "[8]",
    )  # fmt: skip
    assert [w for w in words if w not in text] == []
    more = (
        "atomic_fetch_min_explicit(&held", "atomic_fetch_xor_explicit(&cells", "atomic_load_explicit", "from_xor",
        "from_below", "from_above", "from_around", "simd_active_threads_mask", "simd_product",
        "simd_prefix_inclusive_sum", "simd_prefix_exclusive_product", "k /= 2", "k <<= 1", "k ^= ", "k -= ",
        "thread uint* q", "[2][4]", "const threadgroup uint*", "threadgroup uint (*",
    )  # fmt: skip
    assert [w for w in (*words, *more) if w not in wider] == []
    steps = "".join(metal(generate(seed), "k") for seed in range(STEPPED, STEPPED + 100))
    last = ("k = 128; ", "if (lid < v", "if (lid % (2 * v", "if (lid == 0) v", "tile[lid];", "tile[512]", "< size; v")
    assert [w for w in last if w not in steps] == []
    planar = [metal(generate(seed), "k") for seed in range(PLANAR, PLANAR + 100)]
    rows = (
        "quad_sum(", "quad_any(", "quad_prefix_inclusive_sum(", "in_quad_from_xor", "half4 ", "half2(", "uint2 at ",
        "simdgroup_multiply(", "ulong2(0), true)",
    )  # fmt: skip
    assert [w for w in rows if not any(w in text for text in planar)] == []
    assert any("return;" in text and "threadgroup_barrier" in text for text in planar)


def test_the_reducer_keeps_the_fault_and_little_else() -> None:
    program = next(p for p in map(generate, range(1000)) if _divides(p) and size(p) > 20)

    def first_failing(tried: list[Program]) -> Program | None:
        return next((p for p in tried if _divides(p)), None)

    smallest = [*shrink(program, first_failing)][-1]
    assert _divides(smallest)
    assert well_formed(smallest)
    assert size(smallest) < 10


def test_no_variant_is_the_program_itself() -> None:
    program = generate(7)
    assert all(v != program for v in variants(program))
    assert replace(program) == program


def _divides(program: Program) -> bool:
    return any(s.kind == "divide" for s in statements(program.body))
