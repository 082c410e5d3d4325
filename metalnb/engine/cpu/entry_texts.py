"""Write the entry points of the engine ``cpu``: a loop over a threadgroup, or one thread for fibers or lanes."""

from __future__ import annotations

from metalnb.msl.signature import Signature
from metalnb.msl.text.bracket_tree import Tree, outline

from ..clang.entry_point import kernel_call, source_with_entry
from ..unit import Unit

__all__ = ["fiber_text", "lane_text", "loop_text"]

# In a loop, clang's vectorizer derives these from the loop's counter, so no call is needed.
_INPUTS = {
    "thread_index_in_simdgroup": "here.index_in_threadgroup % 32",
    "simdgroup_index_in_threadgroup": "here.index_in_threadgroup / 32",
}
# The vectorizer's expressions for these inputs (collectives.h).
_LANE_INPUTS = {
    "thread_index_in_simdgroup": "metalnb_lane()",
    "simdgroup_index_in_threadgroup": "metalnb_simdgroup()",
    "thread_index_in_quadgroup": "metalnb_lane() % 4",
}
_HIDDEN = 'extern "C" __attribute__((visibility("hidden")))'
_INLINE = "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n"


def loop_text(unit: Unit, *, independent: bool) -> str:
    """Return a unit's source for threads that never converge: the entry point is a loop over a threadgroup.

    Parameters
    ----------
    unit : Unit
    independent : bool
        True if clang may assume that no thread reads what another writes.
    """
    assumption = "assume_safety" if independent else "enable"
    return source_with_entry(
        unit,
        f"{_HIDDEN} void metalnb_threads(const metal::ulong* $arguments, const $region* $r) {{\n"
        f"{_buffer_pointers(unit.signature)}"
        "  const $region $g = *$r;\n"
        "  for (unsigned $z = 0; $z < $g.size.z; ++$z)\n"
        "    for (unsigned $y = 0; $y < $g.size.y; ++$y)\n"
        f'_Pragma("clang loop vectorize({assumption})")\n'
        "      for (unsigned $x = 0; $x < $g.size.x; ++$x) {\n"
        "        $thread_position here = $position_of($g, $x, $y, $z);\n"
        f"        {kernel_call(unit.signature, _INPUTS)};\n"
        "      }\n"
        "}",
    )


def fiber_text(unit: Unit) -> str:
    """Return a unit's source for threads that converge: the entry point is one thread.

    The unit's iterations are marked: see `metalnb.engine.cpu.iteration_ends`.
    """
    return _inline_pragma(unit) + source_with_entry(
        unit,
        entry="#pragma clang attribute pop\n"
        f"{_HIDDEN} void metalnb_thread(const metal::ulong* $arguments, const $region* $r, unsigned $index) {{\n"
        f"{_buffer_pointers(unit.signature)}"
        "  $thread_position here = $position_of(*$r, $index);\n"
        f"  {kernel_call(unit.signature, _INPUTS)};\n"
        "}",
    )


def lane_text(unit: Unit) -> str:
    """Return a unit's source for the vectorizer: the entry point is one thread, which queries its position.

    The unit has paths back: see `metalnb.engine.clang.loop_exits`.
    """
    return _inline_pragma(unit) + source_with_entry(
        unit,
        entry="#pragma clang attribute pop\n"
        'extern "C" void metalnb_thread(const metal::ulong* $arguments, const $region* r) {\n'
        f"{_buffer_pointers(unit.signature)}"
        "  $thread_position here = $lane_position(*r);\n"
        f"  {kernel_call(unit.signature, _LANE_INPUTS)};\n"
        "}",
    )


def _inline_pragma(unit: Unit) -> str:
    """Return the text that inlines every function; in a shared one, lanes from different call sites would converge.

    It also overrides the author's ``noinline``, except ``[[gnu::noinline]]``, which no macro can remove.
    """
    trees = (tree for cell in (unit.cell, *unit.headers.values()) for tree in outline(cell.edited.original).trees)
    is_kept = any(
        word == "noinline" and not _is_removable(tree, i) for tree in trees for i, word in enumerate(tree.texts)
    )
    return _INLINE if is_kept else f"#define noinline\n{_INLINE}"


def _is_removable(tree: Tree, i: int) -> bool:
    """Return whether a word is an unqualified attribute; in a macro, any unqualified word may be one."""
    opening = tree.enclosing(i)
    is_attribute = tree.text(opening - 1) == "[" or tree.text(opening - 2).startswith("__attribute")
    return tree.text(i - 1) != "::" and (tree.macro or is_attribute)


def _buffer_pointers(signature: Signature) -> str:
    lines = []
    for i, param in enumerate(signature.params):
        space = "__local" if param.space == "threadgroup" else "__global"
        lines.append(f"  {space} void* const b{i} = ({space} void*)$arguments[{i}];\n")
    return "".join(lines)
