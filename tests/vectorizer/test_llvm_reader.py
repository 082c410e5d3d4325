"""Reading LLVM IR: instructions, layouts, control flow."""

import ctypes
import dataclasses

import pytest

from metalnb.engine.llvm.instructions import IRInstruction
from metalnb.engine.llvm.llvm_lines import parse_lines
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.llvm.llvm_types import MemoryLayout, UnsupportedIR, type_of
from metalnb.engine.vectorizer.shape_analysis.lane_flow import LaneFlow


@pytest.mark.parametrize("line", [
    "  %1 = frobnicate i32 0, 1", "  %1 = add i32 0", "  %1 = load <4 y float>, ptr %0", "  switch i32 0, nowhere",
])  # fmt: skip
def test_a_line_that_is_not_understood_is_named(line: str) -> None:
    with pytest.raises(UnsupportedIR, match=f"cannot parse this LLVM IR: {line.strip().split(' ')[0]}"):
        read_module(f"define void @f(ptr %0) {{\n{line}\n  ret void\n}}\n")


def test_twin_is_a_mutable_copy() -> None:
    names = [field.name for field in dataclasses.fields(IRInstruction)]
    values = {name: [name] if name in {"operands", "targets"} else name for name in names}
    made = IRInstruction(**values)  # type: ignore[arg-type]
    twin = made.clone()
    assert dataclasses.asdict(twin) == values
    twin.operands.clear()
    twin.targets.clear()
    assert dataclasses.asdict(made) == values


def test_instructions_have_named_operands() -> None:
    text = """%"struct.S" = type { i8, <3 x float>, [2 x i16] }
define hidden void @f(ptr noundef readonly captures(none) %0, i32 noundef range(i32 0, 32) %1) local_unnamed_addr #0 {
  %3 = getelementptr inbounds nuw %"struct.S", ptr %0, i64 0, i32 2, i64 1
  %4 = load atomic i32, ptr %3 syncscope("agent") monotonic, align 4, !tbaa !3
  %5 = tail call nsz noundef float @llvm.fmuladd.f32(float 1.0, float noundef 2.0, float -0.0) #4, !dbg !9
  switch i32 %1, label %6 [
    i32 0, label %7
    i32 -3, label %6
  ]

6:                                                ; preds = %2, %2
  br label %7

7:                                                ; preds = %6, %2
  %8 = phi i32 [ %4, %2 ], [ undef, %6 ]
  ret void
}
"""
    function = read_module(text).functions["f"]
    first, load, call, switch = function.blocks["%2"]
    assert [p.text for p in function.parameters] == ["%0", "%1"]
    assert (first.element and first.element.text, len(first.operands)) == ('%"struct.S"', 4)
    assert (load.ordering, load.alignment, load.pointer.text) == ("monotonic", 4, "%3")
    assert (call.word, call.debug_location) == ("llvm.fmuladd.f32", "!dbg !9")
    assert [o.text for o in call.operands] == ["1.0", "2.0", "-0.0"]
    assert (switch.cases, switch.targets) == (["0", "-3"], ["%6", "%7", "%6"])
    assert function.blocks["%7"][0].targets == ["%2", "%6"]


@pytest.mark.parametrize(("kind", "indices", "field"), [
    ("%N", "0", "%M"), ("%N", "0, 1", "half"), ("%M", "0", "<3 x half>"), ("[2 x %M]", "1, 1", "half"),
    ("{ i8, %N }", "1, 1", "i64"),
])  # fmt: skip
def test_a_field_of_a_struct_with_a_name_has_its_type(kind: str, indices: str, field: str) -> None:
    text = f"""%M = type {{ <3 x half>, half }}
%N = type {{ %M, i64 }}
define void @f(ptr %0) {{
  %2 = load {kind}, ptr %0, align 8
  %3 = extractvalue {kind} %2, {indices}
  ret void
}}
"""
    (_, extracted, _) = read_module(text).functions["f"]
    assert extracted.type.text == field


def test_only_selected_opcodes_are_parsed() -> None:
    lines = [
        '@s = constant [9 x i8] c"  sdiv i32"', "define void @f(i32 %0) {", "  %1 = frobnicate i32 0, 1",
        '  %"a = sdiv" = udiv exact <2 x i32> %x, splat (i32 3), !nosanitize !{}, !dbg !7', "  %2 = sdivided i32 %0",
        "  switch i32 %0, label %3 [", "    i32 0, label %3", "  ]", "  %4 = tail call i32 @sdiv(i32 %0) #2", "}",
    ]  # fmt: skip
    found = list(parse_lines("\n".join(lines), frozenset({"sdiv", "udiv"})))
    assert [line for line, _ in found] == lines
    (made,) = [made for _, made in found if made]
    assert (made.result, made.opcode, made.flags, str(made.type)) == ('%"a = sdiv"', "udiv", ("exact",), "<2 x i32>")
    assert [o.text for o in made.operands] == ["%x", "splat (i32 3)"]
    assert (made.metadata, made.debug_suffix) == (", !nosanitize !{}, !dbg !7", ", !dbg !7")
    with pytest.raises(UnsupportedIR, match="cannot parse this LLVM IR: %1 = sdiv i32 %0"):
        list(parse_lines("  %1 = sdiv i32 %0", frozenset({"sdiv"})))


def test_a_layout_is_cs() -> None:
    class Inner(ctypes.Structure):
        _fields_ = [("a", ctypes.c_uint8), ("b", ctypes.c_uint64), ("c", ctypes.c_uint16)]

    class Outer(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint16), ("y", Inner * 3), ("z", ctypes.c_float)]

    layout = MemoryLayout({"%Inner": type_of("{ i8, i64, i16 }")})
    outer = type_of("{ i16, [3 x %Inner], float }")
    assert layout.size(outer) == ctypes.sizeof(Outer)
    assert [layout.field(outer, i)[0] for i in range(3)] == [Outer.x.offset, Outer.y.offset, Outer.z.offset]
    assert layout.field(type_of("<{ i8, i32 }>"), 1)[0] == 1
    assert [layout.size(type_of(t)) for t in ("<3 x float>", "<4 x i1>", "i1", "[5 x <2 x half>]")] == [16, 1, 1, 20]


def test_inner_loop_may_branch_back_to_another() -> None:
    """Lanes that leave one loop continue where they leave the other; the search for postdominators used to hang."""
    text = """define void @metalnb_thread(i1 %0, i1 %1) {
  br label %a
a:
  br label %b
b:
  br i1 %1, label %c, label %e
c:
  br i1 %0, label %c, label %b
e:
  br i1 %0, label %a, label %f
f:
  ret void
}
"""
    flow = LaneFlow(read_module(text).functions["metalnb_thread"])
    assert {label: flow.equivalent_dominator(label) for label in ("%b", "%c", "%e", "%f")} == {
        "%b": "%a", "%c": None, "%e": "%a", "%f": "%2",
    }  # fmt: skip


@pytest.mark.parametrize(("operands", "expected"), [
    ("ptr addrspace(3) %0, i64 1", "ptr addrspace(3)"),
    ("ptr %0, i64 1", "ptr"),
    ("ptr addrspace(1) %0, <4 x i64> %1", "<4 x ptr addrspace(1)>"),
    ("<4 x ptr addrspace(1)> %0, <4 x i64> %1", "<4 x ptr addrspace(1)>"),
    ("<4 x ptr> %0, i64 1", "<4 x ptr>"),
])  # fmt: skip
def test_an_address_is_in_its_bases_address_space(operands: str, expected: str) -> None:
    """Checks write phis of addresses, whose types must be right."""
    text = f"define void @f() {{\n  %2 = getelementptr inbounds i32, {operands}\n  ret void\n}}\n"
    assert read_module(text).functions["f"].blocks["%0"][0].type.text == expected
