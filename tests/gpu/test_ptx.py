"""The engine `cuda` without a GPU: PTX of the library, tests/kernels and the notebooks, assembled as a driver would.

Needs NVIDIA's assembler and device library, from wheels: pip install "metalnb[ptx]". Run as a program, this file prints
a table of each kernel's registers and memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from gpu.ptx_assembler import assembler
from oracle import laid

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.clang.entry_point import ENTRY_POINT
from metalnb.engine.cuda.launch_record import LaunchRecord, split_launches
from metalnb.engine.cuda.padded_tables import read_tables_of_three
from metalnb.engine.cuda.ptx import compile_ptx, ignores_threadgroups, limit_registers
from metalnb.engine.llvm.llvm_types import UnsupportedIR
from metalnb.engine.unit import Unit
from metalnb.library_kernels import op_table
from metalnb.library_kernels.launching.programs import compile_templates, program_with_macros
from metalnb.library_kernels.samples.samples_by_op import samples_of

ROOT = Path(__file__).resolve().parents[2]
CAPABILITIES = (75, 90, 120)
MAX_REGISTERS = 160  # per thread; winograd in tests/kernels, which holds a tile in them, takes 138
ALL_REGISTERS = 255  # for kernels that keep a SIMD-group's 64 x 64 sums in them, or attention's
FULL = ("matrix_tiles", "matrix_pipes", "attend_tiles", "attend_matrices")
MAX_SHARED = 32768  # Metal's threadgroup memory
# Kernels that spill, and how many bytes they may: a sort of 2^28 takes 9.0 ms with 64 registers, so that four
# threadgroups fit, and 10.6 ms with 80 registers and no spills (H200).
SPILLS = {
    "tile_scatter_8": 80, "tile_scatter_16": 180, "tile_scatter_32": 108, "tile_scatter_64": 8, "tile_rows_8_8": 28,
    "tile_rows_8_16": 120, "tile_rows_16_16": 184, "tile_rows_32_8": 8, "tile_rows_32_16": 136, "tile_rows_64_8": 12,
}  # fmt: skip


class Use(NamedTuple):
    """A kernel's use of a processor."""

    kernel: str
    capability: int
    registers: int
    spilled: int
    stack: int
    shared: int


@pytest.fixture(scope="module", autouse=True)
def ptx_engine() -> Iterator[Any]:
    if assembler() is None:
        pytest.skip('needs ptxas and libdevice: pip install "metalnb[ptx]"')
    yield from _registered()


def _registered() -> Iterator[Any]:
    engines.REGISTRY["ptx"] = "gpu.ptx_engine"
    try:
        yield engines.named("ptx")
    finally:
        del engines.REGISTRY["ptx"]


def assembled(unit: Unit, capability: int, threads: int = 0) -> Use:
    """Assemble a kernel for threadgroups of at most `threads` threads; fail with the assembler's message."""
    text = compile_ptx(unit, capability)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx")
        file.write_text(limit_registers(text, threads) if threads else text)
        quick = ["-O1"] if len(text) > 200_000 else []
        done = subprocess.run(
            [str(assembler()), f"-arch=sm_{capability}", "-v", *quick, str(file), "-o", os.devnull],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, f"{unit.signature.name} for sm_{capability}: {done.stderr}"
    numbers = [re.search(rf"(\d+) {what}", done.stderr) for what in
               ("registers", "bytes spill stores", "bytes stack frame", "bytes smem")]  # fmt: skip
    return Use(unit.signature.name, capability, *(int(n[1]) if n else 0 for n in numbers))


def of_library(engine: Any) -> list[Unit]:
    """Return the kernels of each op's first sample, for float32 or else the op's first dtype."""
    engine.seen.clear()
    chosen = mnb.use("ptx")
    assert chosen is engine
    try:
        for op in op_table.ops().values():
            dtype = "float32" if "float32" in op.row.dtypes else op.row.dtypes[0]
            samples = samples_of(op)
            sample = next(iter(samples(np.random.default_rng(0), dtype)), None) if samples else None
            if sample is not None:
                args = [laid(a) if isinstance(a, np.ndarray) else a for a in sample.args]
                with contextlib.suppress(IndexError, MemoryError, ValueError):  # the op reads values never computed
                    op(*args, **sample.options)
    finally:
        mnb.use(None)
    return [unit for unit, _ in engine.seen.values()]


def of_texts(texts: list[str]) -> list[Unit]:
    """Return the kernels of some cells, except those that need the author's headers or constants."""
    found = []
    for text in texts:
        try:
            program = mnb.compile(text, engine="ptx")
        except mnb.MetalnbError:
            continue
        found += [kernel.unit for kernel in program.values()]
    return found


def of_suite() -> list[Unit]:
    """Return the kernels in tests/kernels."""
    return of_texts([path.read_text() for path in sorted((ROOT / "tests/kernels").glob("*.metal"))])


def of_notebooks() -> list[Unit]:
    """Return the kernels in the notebooks' cells."""
    texts = []
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            first, _, rest = "".join(cell["source"]).partition("\n")
            if first.startswith("%%metal") and "raises-exception" not in cell["metadata"].get("tags", []):
                texts.append(rest)
    return of_texts(texts)


def uses(units: list[Unit]) -> list[Use]:
    """Assemble kernels for each compute capability; return their use of a processor."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda pair: assembled(*pair), [(u, c) for c in CAPABILITIES for u in units]))


def hold(found: list[Use]) -> None:
    for use in found:
        assert use.registers <= (ALL_REGISTERS if any(name in use.kernel for name in FULL) else MAX_REGISTERS), use
        assert use.shared <= MAX_SHARED, use
        assert use.spilled <= SPILLS.get(use.kernel, 0), use


@pytest.mark.long  # Minutes in NVIDIA's assembler; the tests below assemble single kernels
def test_the_librarys_kernels_are_assembled_and_spill_nothing(ptx_engine: Any) -> None:
    units = of_library(ptx_engine)
    assert len(units) > 120
    hold(uses(units))


@pytest.mark.long  # Seconds in the assembler; arrays/test_gpu_plans.py runs the same plans
def test_reductions_of_long_rows_and_columns_keep_full_occupancy(ptx_engine: Any) -> None:
    """Reductions need all of a processor's threads to hide memory latency, so each thread may use few registers."""
    ptx_engine.seen.clear()
    mnb.use("ptx")
    try:
        row = mnb.empty((4_000_000,), dtype="float32")
        columns = row.reshape((40_000, 100))
        for op in (mnb.sum, mnb.argmax, mnb.cumulative_sum):
            op(row, axis=0)
            op(columns, axis=0)
    finally:
        mnb.use(None)
    units = [unit for unit, _ in ptx_engine.seen.values()]
    names = {unit.signature.name for unit in units}
    assert names >= {"rows_first", "rows_shared_later", "down_first", "down_later", "rows", "pick_shared", "down",
                     "merge_lanes", "totals_rows", "totals_down", "totals_shared"}  # fmt: skip
    found = uses(units)
    hold(found)
    full = {75: 65536 // 1024, 90: 65536 // 2048, 120: 65536 // 1536}
    for use in found:
        if use.kernel not in {"totals_shared", "rows", "rows_wide"}:  # one threadgroup; scans
            assert use.registers <= full[use.capability], use


@pytest.mark.long  # 15 s in the assembler; the tests below assemble single kernels
def test_the_suites_kernels_are_assembled_and_spill_nothing() -> None:
    units = of_suite()
    assert len(units) > 30
    hold(uses(units))


@pytest.mark.long  # Likewise
def test_the_notebooks_kernels_are_assembled_and_spill_nothing() -> None:
    units = of_notebooks()
    assert len(units) > 20
    hold(uses(units))


@pytest.mark.parametrize(("op", "kind"), [("left", "long"), ("left", "ulong"), ("right", "ulong")])
def test_shift_amount_is_not_masked(op: str, kind: str) -> None:
    """The instruction takes 32 bits, and clang's back end drops a comparison that the text has."""
    text = f"""#include <metalnb/integers.h>
        kernel void k(device {kind}* x, device const {kind}* y) {{ x[0] = shifted_{op}(x[0], y[0]); }}"""
    (unit,) = of_texts([text])
    assert re.search(r"setp\.\w+\.u64", compile_ptx(unit, 90))


@pytest.mark.long  # Likewise
@pytest.mark.parametrize("ways", [("WIDE_ALONG", "WIDE_ACROSS"), ("WIDE_ACROSS", "WIDE_ALONG")], ids=str)
def test_two_of_a_products_tiles_fit_a_processor(ptx_engine: Any, ways: tuple[str, str]) -> None:
    """Each tile uses at most half of a processor's registers."""
    macros = {"A_WAY": ways[0], "B_WAY": ways[1]}
    found = [(program_with_macros(
        "tiles.metal", ptx_engine.name, **macros,
    )["tiles_float"].unit, 256, MAX_SHARED // 2 + 1024)]  # fmt: skip
    matrices = program_with_macros("matrix_tiles.metal", ptx_engine.name, **macros)
    found += [(matrices[f"matrix_tiles_{kind}"].unit, 128, MAX_SHARED) for kind in ("half", "bfloat16_parts")]
    for unit, threads, most in found:
        use = assembled(unit, 90)
        assert use.registers * threads <= 32768, use
        assert use.spilled == 0, use
        assert use.shared <= most, use


def test_a_product_of_half_goes_to_tensor_cores_without_a_shuffle(ptx_engine: Any) -> None:
    """One instruction covers two matrices of sums and two steps along K; one access reads four matrices of a factor."""
    program = program_with_macros("matrix_tiles.metal", ptx_engine.name, A_WAY="WIDE_ALONG", B_WAY="WIDE_ACROSS")
    for kernel, kind in (("matrix_tiles_half", "f16"), ("large_matrix_tiles_bfloat16", "bf16")):
        text = compile_ptx(program[kernel].unit, 90)
        assert text.count(f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32") == 64
        assert "shfl" not in text
        loop = text[: text.rindex("mma.sync")]
        assert loop.count("ldmatrix.sync.aligned.m8n8.x4") == 16  # 8 x 2 matrices of A and 2 x 8 of B, twice
        assert loop.count("ldmatrix.sync.aligned.m8n8.x4.trans") == 8  # all of B, whose rows are across K
        assert loop.count("ldmatrix") == 16
        assert "ld.shared" not in loop


@pytest.mark.parametrize("way", ["WIDE_ALONG", "WIDE_ACROSS"])
def test_strips_are_copied_asynchronously_during_multiplication(ptx_engine: Any, way: str) -> None:
    """A strip has 8 x 8 pairs of matrices, and one access reads two pairs; copies bypass the registers."""
    program = program_with_macros("matrix_pipes.metal", ptx_engine.name, A_WAY="WIDE_ALONG", B_WAY=way)
    unit = program["matrix_pipes_half"].unit
    text = compile_ptx(unit, 90)
    assert text.count("mma.sync.aligned.m16n8k16") == 4 * text.count("ldmatrix.sync.aligned.m8n8.x4") == 32
    assert "shfl" not in text
    assert "st.shared" not in text[: text.rindex("mma.sync")]
    assert text.count("cp.async.wait_group") == 1
    use = assembled(unit, 90)
    assert use.registers * 128 <= 32768, use
    assert use.spilled == 0, use
    assert use.shared <= MAX_SHARED, use


@pytest.mark.long  # Likewise
@pytest.mark.parametrize(("kind", "width", "keys", "high"), [("half", 64, 64, 4), ("bfloat", 128, 32, 2)])
def test_attention_moves_nothing_between_its_products(
    ptx_engine: Any, kind: str, width: int, keys: int, high: int
) -> None:
    """Weights are computed where scores were summed; only a row's largest score and its total are exchanged."""
    template = f"attend_matrices<{kind}, {width}, {width}, {keys}, {high}, false, true>"
    program = compile_templates("attention_matrices.metal", {"attend_matrices": template}, ptx_engine.name)
    unit = program["attend_matrices"].unit
    text = compile_ptx(unit, 90)
    assert text.count("mma.sync.aligned.m16n8k16") == 2 * (high // 2) * (keys // 8) * (width // 16)
    assert text.count("ldmatrix.sync.aligned.m8n8.x4") == text.count("ldmatrix") == 2 * (keys // 16) * (width // 16)
    assert text.count("shfl") == 2 * 2 * high
    assert text.count("cp.async.cg") == 4 * (keys * width // 8 // 128)  # the first two tiles; in the loop, one of each
    assert "st.shared" not in text
    use = assembled(unit, 90)
    assert use.spilled == 0, use
    assert use.shared <= MAX_SHARED, use
    assert "cp.async" not in compile_ptx(unit, 75)


@pytest.mark.long(every=2)  # Each dtype; the other number of bits differs in its unpacking, which test_neural runs
@pytest.mark.parametrize(("kind", "bits", "products"), [
    ("half", 4, 8 + 8 * 2), ("half", 8, 4 + 4 * 2), ("bfloat", 8, 4 + 8 * 2),
])  # fmt: skip
def test_quantized_weights_are_multiplied_unconverted(ptx_engine: Any, kind: str, bits: int, products: int) -> None:
    """No weight is converted or moved: the sums of x and each pair of rows take a product for two pairs of elements."""
    template = f"quantized_pair<{kind}, half, {bits}, false, 2, 8>"
    program = compile_templates("quantized_matrices.metal", {"quantized_pair": template}, ptx_engine.name)
    unit = program["quantized_pair"].unit
    text = compile_ptx(unit, 90)
    loop = text[text.index("mma.sync") : text.rindex("mma.sync")]
    assert text.count("mma.sync.aligned.m16n8k16") == products
    assert "shfl" not in loop
    assert "cvt.rn" not in loop
    use = assembled(unit, 90)
    assert use.registers * 256 <= 32768, use
    assert use.spilled == 0, use


def test_a_matrix_whose_elements_were_shown_is_what_the_kernel_wrote(ptx_engine: Any) -> None:
    text = """kernel void k(device const half* x, device half* y, uint i [[thread_position_in_grid]]) {
        simdgroup_half8x8 a, b;
        simdgroup_load(a, x);
        simdgroup_load(b, x + 64);
        WRITE
        simdgroup_store(a * b, y);
    }"""
    shuffles = {}
    for write in ("", "a.thread_elements()[0] = half(i);", "b.thread_elements()[1] = half(i);"):
        shuffles[write] = compile_ptx(unit_of(text.replace("WRITE", write)), 90).count("shfl")
    assert list(shuffles.values()) == [0, 1, 2]


HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def unit_of(text: str, name: str = "k") -> Unit:
    return mnb.compile(HEAD + text, engine="ptx")[name].unit


def test_a_kernel_for_1024_threads_has_registers_for_them() -> None:
    turn, written = (
        "".join(text.format(k=k) for k in range(80))
        for text in ("h{k} = fma(h{k}, x[j], x[j + {k}]);", "x[i * 80 + {k}] = h{k};")
    )
    unit = unit_of(f"""
    kernel void k(device float* x, uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {{
        float {", ".join(f"h{k} = {k}" for k in range(80))};
        for (uint j = 0; j < n; ++j) {{ {turn} }}
        {written}
    }}""")
    assert assembled(unit, 90).registers > 64
    assert assembled(unit, 90, 1024).registers <= 64


@pytest.mark.parametrize(("text", "alone"), [
    ("kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }", True),
    ("kernel void k(device float* x, uint2 i [[thread_position_in_grid]]) { x[i.y * 9 + i.x] = 1; }", True),
    ("kernel void k(device float* x, uint n [[threads_per_grid]]) { x[n] = 1; }", True),
    ("kernel void k(device uint* x, uint n [[threads_per_threadgroup]]) { x[0] = n; }", False),
    ("kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = simd_sum(x[i]); }", False),
    ("kernel void k(device float* x) { threadgroup_barrier(mem_flags::mem_device); x[0] = 1; }", False),
    ("kernel void k(device float* x, threadgroup float* t [[threadgroup(0)]]) { t[0] = 1; x[0] = t[0]; }", False),
])  # fmt: skip
def test_last_threadgroups_are_trimmed_only_if_the_kernel_cannot_tell(text: str, alone: bool) -> None:
    unit = unit_of(text)
    assert ignores_threadgroups(unit, compile_ptx(unit, 90)) == alone


def test_an_input_at_program_scope_is_read_as_a_parameter() -> None:
    scoped = unit_of(
        "uint gid [[thread_position_in_grid]]; float f(float a) { return a * gid; }\n"
        "kernel void k(device float* y) { y[gid] = f(y[gid]); }"
    )
    parameter = unit_of(
        "float f(float a, uint gid) { return a * gid; }\n"
        "kernel void k(device float* y, uint gid [[thread_position_in_grid]]) { y[gid] = f(y[gid], gid); }"
    )
    assert compile_ptx(scoped, 90) == compile_ptx(parameter, 90)
    assert ignores_threadgroups(scoped, compile_ptx(scoped, 90))


_READ = "kernel void k(device float* y, constant uint& i, device const float3& v) { y[0] = t[i].x + v.x; }"


THREES = {
    "constant float3 t[] = {float3(1, 2, 3), float3(4, 5, 6)};": ("f4", [1, 2, 3, 0, 4, 5, 6, 0]),
    "constant half3 t[] = {half3(1, 2, 3), half3(-4, 5, 6)};": ("f2", [1, 2, 3, 0, -4, 5, 6, 0]),
    "constant char3 t[] = {char3(1, -2, 3), char3(4)};": ("i1", [1, -2, 3, 0, 4, 4, 4, 0]),
    "constant ulong3 t[] = {ulong3(1, 2, 3), ulong3(4, 5, 1ul << 63)};": ("u8", [1, 2, 3, 0, 4, 5, 1 << 63, 0]),
    "constant float3x3 t[] = {float3x3(1), float3x3(0.1f)};":
        ("f4", [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.1, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 0.1, 0]),
    "struct E { float3 a; float x; };\nconstant E t[] = {{float3(1), 2}, {float3(4), 5}};":
        ("f4", [1, 1, 1, 0, 2, 0, 0, 0, 4, 4, 4, 0, 5, 0, 0, 0]),
    "struct E { float3 a; char b; };\nstruct D { E e[2]; half3 h; };\nconstant D t[] = {{{{1, 2}, {3, 4}}, 5}, {}, "
    "{{{6, 7}, {}}, 8}};": ("i1", b"".join(
        np.float32([a] * 3).tobytes() + bytes(4) + bytes([b]) + bytes(15) + np.float32([c] * 3).tobytes() + bytes(4)
        + bytes([d]) + bytes(15) + np.float16([e] * 3).tobytes() + bytes(10)
        for a, b, c, d, e in ((1, 2, 3, 4, 5), (0, 0, 0, 0, 0), (6, 7, 0, 0, 8)))),
}  # fmt: skip


@pytest.fixture(scope="module")
def ptx_of_threes() -> str:
    """Compile a kernel that reads all tables, the n-th in namespace ``n<n>``."""
    spaces = "".join(f"namespace n{n} {{\n{table}\n}}\n" for n, table in enumerate(THREES))
    reads = "".join(
        f"b = (constant uchar*)n{n}::t; for (uint j = 0; j < sizeof(n{n}::t); ++j) *y++ = b[i + j];"
        for n in range(len(THREES))
    )
    kernel = f"kernel void k(device uchar* y, constant uint& i) {{ constant uchar* b; {reads} }}"
    return compile_ptx(unit_of(f"{spaces}{kernel}"), 90)


@pytest.mark.parametrize("table", THREES)
def test_table_that_clang_writes_without_padding_is_rewritten(table: str, ptx_of_threes: str) -> None:
    """The bytes in the PTX are those of the type in memory."""
    name = f"_ZN2n{[*THREES].index(table)}L1tE"
    size, listed = re.search(rf"\.b8 {name}\[(\d+)\] = \{{([^}}]*)\}}", ptx_of_threes).groups()  # type: ignore[union-attr]
    kind, expected = THREES[table]
    bytes_wanted = expected if isinstance(expected, bytes) else np.array(expected, kind).tobytes()
    assert bytes(int(n) for n in listed.split(",")) == bytes_wanted
    assert int(size) == len(bytes_wanted)


def test_constants_in_llvm_ir() -> None:
    """Forms that clang rarely writes."""
    text = """%E = type <{ i8, %"class.a::b" }>
%"class.a::b" = type { <3 x float> }
@plain = constant [2 x i32] [i32 1, i32 2], align 4
@all = internal unnamed_addr addrspace(1) constant <3 x float> splat (float 1.5), align 16
@none = constant [2 x <3 x half>] zeroinitializer, align 8
@"a.b" = constant %E <{ i8 -1, %"class.a::b" { <3 x float> <float 0x3FB99999A0000000, float undef, float 2.0> } }>
@text = constant { [3 x i8], <3 x i8> } { [3 x i8] c"a\\00\\FF", <3 x i8> <i8 1, i8 2, i8 3> }
@"no constant " = global <3 x i8> zeroinitializer
@elsewhere = external addrspace(1) constant <3 x i8>, align 4
@address = constant [1 x ptr] [ptr @plain]
define void @f() {
  frobnicate
}
"""
    found = read_tables_of_three(text)
    assert found == {
        "all": np.float32([1.5, 1.5, 1.5, 0]).tobytes(),
        "none": bytes(16),
        "a_$_b": b"\xff" + np.float32([0.1, 0, 2, 0]).tobytes(),
        "text": b"a\0\xff\0\1\2\3\0",
    }


@pytest.mark.parametrize("table", [
    "{ ptr, <3 x i8> } { ptr @plain, <3 x i8> zeroinitializer }", "<3 x i1> <i1 true, i1 false, i1 true>",
    "<3 x i8> bitcast (i24 7 to <3 x i8>)", "<3 x i64> splat (i64 ptrtoint (ptr @t to i64))",
])  # fmt: skip
def test_a_table_that_is_not_made_of_numbers_is_refused(table: str) -> None:
    with pytest.raises(UnsupportedIR, match="a constant"):
        read_tables_of_three(f"@t = constant {table}, align 8")


@pytest.mark.parametrize("table", [
    "constant packed_float3 t[] = {packed_float3(1, 2, 3), packed_float3(4, 5, 6)};",
    "constant float4 t[] = {float4(1), float4(0)};",
    "struct Entry { int x; float y; };\nconstant Entry t[] = {{1, 2.0f}, {3, 4.0f}};",
])  # fmt: skip
def test_tables_written_with_padding_are_unchanged(table: str) -> None:
    text = compile_ptx(unit_of(table + _READ), 90)
    assert " = {" in text.split(".b8", 1)[1]


KERNEL = """#include <metal_stdlib>
using namespace metal;
kernel void k(device uint* out, device const uint* id, device const uint* v, uint i [[thread_position_in_grid]]) {
"""
# Alternating: loops in which each lane gets the sum over the lanes that leave with it.
TURNS = {
    "break": "for (;;) { uint f = simd_broadcast_first(id[i]); if (id[i] == f) { out[i] = simd_sum(v[i]); break; } }",
    "return": "while (true) if (id[i] == simd_broadcast_first(id[i])) { out[i] = simd_sum(v[i]); return; }",
    "a value": "uint s; while (true) { if (id[i] == simd_broadcast_first(id[i])) { s = simd_sum(v[i]); break; } } "
               "out[i] = simd_max(s) + s;",
    "continue": "for (uint k = 0;; ++k) { if (id[i] != k) continue; out[i] = simd_sum(v[i]); break; }",
    "counted": "uint s = 0; for (uint k = 0; k < 4; ++k) { if (id[i] == k) { s = simd_sum(v[i]); break; } } "
               "out[i] = s;",
    "a flag": "bool done = false; uint s = 0; while (!done) { uint f = simd_broadcast_first(id[i]); "
              "if (id[i] == f) { s = simd_sum(v[i]); done = true; } } out[i] = s;",
}  # fmt: skip


@pytest.mark.parametrize("loop", TURNS.values(), ids=TURNS.keys())
def test_code_on_a_loop_exit_runs_before_threads_reconverge(loop: str) -> None:
    """Threads converge again after a loop: there the sum would be over all lanes, as it once was in machine code."""
    unit = mnb.compile(f"{KERNEL}{loop} }}", engine="ptx").k.unit
    sums, again = ways_on(compile_ptx(unit, 90), "redux.sync.add")
    assert again >= max(1, sums - 1), "a sum from which no other iteration is reached"  # except a counted loop's last
    assembled(unit, 90)


def ways_on(text: str, word: str) -> tuple[int, int]:
    """Return how many blocks contain an instruction, and how many of those lead to a block that contains it."""
    blocks: dict[str, list[str]] = {"start": []}
    name = "start"
    for line in map(str.strip, text[text.index(f".entry {ENTRY_POINT}") :].splitlines()):
        label = re.match(r"(\$L\w+):", line)
        if label or (blocks[name] and re.search(r"\bbra|^ret", blocks[name][-1])):
            name = label[1] if label else f"behind {name}"
            blocks[name] = []
        blocks[name].append(line)
    names = [*blocks]
    having = {n for n in names if any(word in line for line in blocks[n])}

    def nexts(at: str) -> set[str]:
        last = blocks[at][-1] if blocks[at] else ""
        to = {m[1] for line in blocks[at] if (m := re.search(r"\bbra(?:\.uni)?\s+(\$L\w+)", line))}
        ends = last.startswith(("bra", "ret"))
        return to if ends or at == names[-1] else {*to, names[names.index(at) + 1]}

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        ahead = [*nexts(start)]
        while ahead:
            at = ahead.pop()
            if at not in found:
                found.add(at)
                ahead += nexts(at)
        return found

    return len(having), sum(not having.isdisjoint(reached(n)) for n in having)


_BY_SPACE = {
    "functions": """
        inline float f(device const float* x) { return x[0] * 3; }
        inline float f(constant float* x) { return x[0] * 5; }
        kernel void k(device float* x, constant float* c) { x[1] = f(x); x[2] = f(c); }""",
    "members": """
        struct S { float v; float f() const device { return v * 3; } float f() const constant { return v * 5; } };
        kernel void k(device S* x, constant S* c) { x[1].v = x[0].f(); x[2].v = c[0].f(); }""",
    "conversions": """
        struct S {
            float v;
            operator vec<float, 2>() const device { return vec<float, 2>(v * 3); }
            operator vec<float, 2>() const constant { return vec<float, 2>(v * 5); }
        };
        kernel void k(device S* x, constant S* c) { float2 a = x[0], b = c[0]; x[1].v = a.x; x[2].v = b.x; }""",
    "members of a program's constant": """
        struct S { float v; float f() const constant { return v; } float f() const device { return v * 3; } };
        constant S five = {5};
        kernel void k(device S* x) { x[1].v = x[0].f(); x[2].v = x[0].v * five.f(); }""",
}


@pytest.mark.parametrize("what", _BY_SPACE)
def test_overloads_on_the_address_space_stay_apart(what: str) -> None:
    text = compile_ptx(unit_of(_BY_SPACE[what]), 90)
    assert "0f40400000" in text  # 3
    assert "0f40A00000" in text  # 5


@pytest.mark.parametrize(("grid", "threadgroup", "cut", "wanted"), [
    ((64, 1, 1), (32, 1, 1), False, [(2, 1, 1, 32, 1, 1)]),
    ((100, 1, 1), (32, 1, 1), False, [(3, 1, 1, 32, 1, 1), (1, 1, 1, 4, 1, 1)]),
    ((100, 1, 1), (32, 1, 1), True, [(4, 1, 1, 32, 1, 1)]),
    ((1, 1, 128), (1, 1, 128), False, [(1, 1, 1, 128, 1, 1)]),
    ((1, 70_000, 1), (1, 1, 1), False, [(1, 65535, 1, 1, 1, 1), (1, 4465, 1, 1, 1, 1)]),
    ((2**32 - 1, 1, 1), (2, 1, 1), False, [(2**31 - 1, 1, 1, 2, 1, 1), (1, 1, 1, 1, 1, 1)]),
    ((2**31, 1, 1), (1, 1, 1), False, [(2**31 - 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1)]),
])  # fmt: skip
def test_a_dispatch_is_launches_within_the_drivers_limits(
    grid: Any, threadgroup: Any, cut: bool, wanted: list[Any]
) -> None:
    launches = split_launches(grid, threadgroup, full_size=cut)
    assert [one.shape for one in launches] == wanted
    starts = [np.frombuffer(one.grid_position, np.uint32)[:3] for one in launches]
    assert len({tuple(start) for start in starts}) == len(launches)


def test_the_launch_record_matches_the_entry_points_parameter() -> None:
    text = """kernel void k(device float* x, constant float& a, threadgroup float* t [[threadgroup(0)]]) {
        t[0] = a; x[0] = t[0]; }"""
    unit = unit_of(text)
    listed = compile_ptx(unit, 90).split(f".entry {ENTRY_POINT}(")[1].split(")")[0]
    assert re.findall(r"\.(u64|u32|b8)", listed) == ["u64", "u64", "u32", "b8"]
    record = LaunchRecord(unit.signature)
    (one,) = split_launches((1, 1, 1), (1, 1, 1), full_size=False)
    record.write(1, 2, 3)
    record.set_grid_position(one.grid_position)
    assert bytes(record._bytes) == np.array([1, 2], np.uint64).tobytes() + np.uint32(3).tobytes() + one.grid_position


def main() -> None:
    """Print the table."""
    for engine in _registered():
        units = [*of_library(engine), *of_suite(), *of_notebooks()]
        print("| kernel | sm | registers | spilled | stack | shared |\n|---|---|---|---|---|---|")
        for use in sorted(set(uses(units))):
            print("| " + " | ".join(map(str, use)) + " |")


if __name__ == "__main__":
    main()
