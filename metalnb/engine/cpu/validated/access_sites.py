"""Insert inline checks into the optimized IR of the validated build, so that most loads make no call.

clang's thread sanitizer puts a call before each access. For a load, a few instructions that handle the usual case
replace it: see runtime/marks.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...llvm.instructions import NAME, IRInstruction
from ...llvm.llvm_lines import parse_lines

__all__ = ["insert_sites"]

_OPCODES = frozenset({"load", "store", "call"})
_ACCESS_CALL = re.compile(r"__tsan_(?P<aligned>unaligned_)?(?P<kind>read|write)(?P<size>\d+)")
_EXCHANGE = re.compile(r"__tsan_atomic(\d+)_exchange")
_RANGES = [f"declare void @__tsan_{kind}_range(ptr, i64)" for kind in ("read", "write")]
_SITES = """
@metalnb_sites = hidden global [{count} x [6 x i64]] zeroinitializer
@metalnb_site_count = hidden constant i64 {count}
@metalnb_now = external hidden global i64
"""
# A load's inline check, before it calls the runtime; runtime/marks.h defines a site. An address that is not a multiple
# of the access's size becomes a number above every limit.
_LOAD = """
declare preserve_mostcc void @metalnb_look{name}(ptr, ptr) nounwind
define internal void @metalnb_load{name}(ptr %p, ptr %site) alwaysinline nounwind {{
  %at = ptrtoint ptr %p to i64
  %start = load i64, ptr %site, !nosanitize !{{}}
  %limit_at = getelementptr i64, ptr %site, i64 1
  %limit = load i64, ptr %limit_at, !nosanitize !{{}}
  %offset = sub i64 %at, %start
  %element = call i64 @llvm.fshr.i64(i64 %offset, i64 %offset, i64 {shift})
  %within = icmp ult i64 %element, %limit
  br i1 %within, label %near, label %look, !prof !{{!"branch_weights", i32 2000, i32 1}}
near:
  %units_at = getelementptr i64, ptr %site, i64 2
  %units = load ptr, ptr %units_at, !nosanitize !{{}}
  %mask_at = getelementptr i64, ptr %site, i64 3
  %mask = load i64, ptr %mask_at, !nosanitize !{{}}
  %number = and i64 %element, %mask
  %later_at = getelementptr [3 x i64], ptr %units, i64 %number, i64 2
  %later = load i64, ptr %later_at, !nosanitize !{{}}
  %moment = lshr i64 %later, 36
  %now = load i64, ptr @metalnb_now, !nosanitize !{{}}
  %done = icmp eq i64 %moment, %now
  br i1 %done, label %count, label %look, !prof !{{!"branch_weights", i32 2000, i32 1}}
count:
  %count_at = getelementptr i64, ptr %site, i64 4
  %before = load i64, ptr %count_at, !nosanitize !{{}}
  %after = add i64 %before, 1
  store i64 %after, ptr %count_at, !nosanitize !{{}}
  ret void
look:
  call preserve_mostcc void @metalnb_look{name}(ptr %p, ptr %site)
  ret void
}}
"""
_STORE = """
declare preserve_mostcc void @metalnb_store{name}(ptr, ptr) nounwind
"""


def insert_sites(text: str) -> str:
    """Insert inline checks into optimized IR.

    Also report the loads and stores of sizes that the thread sanitizer does not handle.
    """
    lines: list[str] = []
    checks: set[tuple[str, str]] = set()
    sites = 0
    for line, inst in parse_lines(_replace_exchanges(text), _OPCODES):
        if inst is not None and (match := _ACCESS_CALL.fullmatch(inst.word)):
            name = f"{'_unaligned' if match['aligned'] else ''}{match['size']}"
            kind, call = ("load", "call") if match["kind"] == "read" else ("store", "call preserve_mostcc")
            checks.add((kind, name))
            site = f"ptr getelementptr ([6 x i64], ptr @metalnb_sites, i64 {sites})"
            lines.append(f"  {call} void @metalnb_{kind}{name}({inst.operands[0]}, {site}){inst.debug_suffix}")
            sites += 1
            continue
        if inst is not None and inst.opcode != "call":
            lines += _report_range(inst)
        lines.append(line)
    lines += [d for d in _RANGES if d.split("@")[1].split("(")[0] + "(" not in text]
    lines.append(_SITES.format(count=sites))
    for kind, name in sorted(checks):
        shift = int(name.removeprefix("_unaligned")).bit_length() - 1
        lines.append((_LOAD if kind == "load" else _STORE).format(name=name, shift=shift))
    if sites and "declare i64 @llvm.fshr.i64" not in text:
        lines.append("declare i64 @llvm.fshr.i64(i64, i64, i64)")
    return "\n".join(lines) + "\n"


def _report_range(inst: IRInstruction) -> Iterator[str]:
    """Yield the instructions that report an access of a size that the thread sanitizer does not handle."""
    ir_type = inst.type if inst.opcode == "load" else inst.operands[0].type
    if inst.ordering or ir_type.kind not in {"integer", "vector"}:
        return
    size = -(-ir_type.components * ir_type.element.bits // 8)
    if size not in {1, 2, 4, 8, 16}:
        access = "read" if inst.opcode == "load" else "write"
        yield f"  call void @__tsan_{access}_range({inst.pointer}, i64 {size}){inst.debug_suffix}"


def _replace_exchanges(text: str) -> str:
    """Turn an exchange whose result is unused into a store, which reads nothing."""
    if "_exchange(" not in text:
        return text
    lines: list[str] = []
    stores: set[str] = set()
    for function in re.split(r"(?<=\n}\n)", text):
        uses = NAME.findall(function)
        for line, inst in parse_lines(function, _OPCODES):
            exchange = _EXCHANGE.fullmatch(inst.word) if inst else None
            if inst is None or exchange is None or uses.count(inst.result) > 1:
                lines.append(line)
                continue
            stores.add(exchange[1])
            arguments = ", ".join(map(str, inst.operands))
            lines.append(f"  call void @__tsan_atomic{exchange[1]}_store({arguments}){inst.debug_suffix}")
    for bits in sorted(stores):
        declaration = f"declare void @__tsan_atomic{bits}_store(ptr, i{bits}, i32)"
        if not any(line.startswith(declaration) for line in lines):
            lines.append(declaration)
    return "\n".join(lines) + "\n"
