"""LLVM's optimised text of a kernel in the checked build, with each load looking for itself as far as it can.

What clang's thread sanitizer put before an access is a call. Before a load it becomes some instructions that find the
usual case by themselves: see runtime/marks.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..llvm_text import NAME, lanes_of, place_in

__all__ = ["with_sites"]

_WIDE = r"<\d+ x \w+>|i\d+"
_ACCESS = re.compile(
    rf"  (?:{NAME} = load (?:volatile )?(?P<read>{_WIDE}), |store (?:volatile )?(?P<written>{_WIDE}) .*, )"
    rf"ptr (?P<at>{NAME}|@[\w.$]+), align "
)
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


_KNOWN = re.compile(
    r"  (?:tail )?call void @__tsan_(?P<how>(?:unaligned_)?(?:read|write))(?P<size>\d+)\(ptr (?P<at>[^)]*)\)"
)
_EXCHANGED = re.compile(
    rf"  (?P<to>{NAME}) = (?:tail )?call i(?P<bits>\d+) @__tsan_atomic(?P=bits)_exchange\((?P<given>[^)]*)\)"
)
_SITES = """
@metalnb_sites = hidden global [{count} x [6 x i64]] zeroinitializer
@metalnb_site_count = hidden constant i64 {count}
@metalnb_now = external hidden global i64
"""
# What a load does by itself: runtime/marks.h says what a site is. An address that is no multiple of the access's size
# becomes a number that no limit reaches.
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


def with_sites(text: str) -> str:
    """Let each access, in an optimised text, look for itself as far as it can.

    Also tell of the loads and stores whose size the thread sanitizer does not know.
    """
    lines = []
    used: set[tuple[str, str]] = set()
    sites = 0
    for line in text.splitlines():
        if (m := _KNOWN.match(line)) is not None:
            aligned = "_unaligned" if m["how"].startswith("un") else ""
            name = f"{aligned}{m['size']}"
            kind = "load" if m["how"].endswith("read") else "store"
            used.add((kind, name))
            how = "call void" if kind == "load" else "call preserve_mostcc void"
            site = f"ptr getelementptr ([6 x i64], ptr @metalnb_sites, i64 {sites})"
            lines.append(f"  {how} @metalnb_{kind}{name}(ptr {m['at']}, {site}){place_in(line)}")
            sites += 1
            continue
        if (m := _ACCESS.match(line)) is not None:
            lanes, scalar = lanes_of(m["read"] or m["written"])
            bits = max(1, lanes) * (_BITS.get(scalar) or int(scalar[1:]))
            if bits // 8 not in {0, 1, 2, 4, 8, 16}:
                how = "read" if m["read"] else "write"
                lines.append(f"  call void @__tsan_{how}_range(ptr {m['at']}, i64 {-(-bits // 8)}){place_in(line)}")
        lines.append(line)
    lines = list(_exchanges(lines))
    lines += [d for d in _RANGES if d.split("@")[1].split("(")[0] + "(" not in text]
    lines.append(_SITES.format(count=sites))
    for kind, name in sorted(used):
        shift = int(name.removeprefix("_unaligned")).bit_length() - 1
        lines.append((_LOAD if kind == "load" else _STORE).format(name=name, shift=shift))
    if sites and "declare i64 @llvm.fshr.i64" not in text:
        lines.append("declare i64 @llvm.fshr.i64(i64, i64, i64)")
    return "\n".join(lines) + "\n"


def _exchanges(lines: list[str]) -> Iterator[str]:
    """Let an exchange whose result nobody uses be a store, which reads nothing."""
    function, stores = 0, set()
    for i, line in enumerate(lines):
        if line.startswith("define "):
            function = i
        if (m := _EXCHANGED.match(line)) is None:
            yield line
            continue
        end = next(k for k in range(i, len(lines)) if lines[k] == "}")
        result = re.compile(re.escape(m["to"]) + r"(?![\w.$-])")
        if any(result.search(each) for k, each in enumerate(lines[function:end], function) if k != i):
            yield line
            continue
        stores.add(m["bits"])
        yield f"  call void @__tsan_atomic{m['bits']}_store({m['given']}){place_in(line)}"
    for bits in stores:
        declared = f"declare void @__tsan_atomic{bits}_store(ptr, i{bits}, i32)"
        if not any(line.startswith(declared) for line in lines):
            yield declared
_RANGES = [f"declare void @__tsan_{how}_range(ptr, i64)" for how in ("read", "write")]
