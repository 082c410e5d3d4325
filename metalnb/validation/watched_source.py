"""Rewrite a kernel so that its buffers watch themselves.

Each pointer parameter ``a`` becomes ``a_memory``, and the body begins by wrapping it in ``Input``, ``Output`` or
``Atomics`` (``watched.h``) under its old name. The text is rewritten, not interpreted: so it runs on every engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from metalnb.msl.signature import Signature
from metalnb.msl.text.bracket_tree import Tree
from metalnb.msl.text.edits import Edit, EditedText
from metalnb.msl.text.kernel_head import KernelHead, kernel_head

__all__ = ["ATOMICS", "HEADER", "LEDGER", "MEMORY", "NAME", "OUTPUT", "SIZES", "rewritten"]

NAME = "metalnb_watched.h"
HEADER = (Path(__file__).parent / "watched.h").read_text("utf-8")
ATOMICS, OUTPUT = "Atomics", "Output"
LEDGER, SIZES, MEMORY = "watch_ledger", "watch_sizes", "_memory"  # the twin's own parameters; a watched one's end

_SPATIAL = re.compile(r"position|^(dispatch_)?threads_per_(grid|threadgroup)|_per_grid|^grid_")  # all as wide as one


def rewritten(source: str, signature: Signature, arrays: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Rewrite a kernel's head, and put the buffers that watch themselves before its body.

    Parameters
    ----------
    source : str
        The cell's text.
    signature : Signature
        The kernel's.
    arrays : sequence of str
        The parameters that point to arrays.

    Returns
    -------
    source : str
    watched : dict of str to str
        The parameters that will be watched, and by which of `watched.h`: not those in constant memory, nor
        atomics whose address is used otherwise than by an atomic function at once.

    None for a template's kernel, or one that a macro makes.
    """
    found = kernel_head(source, signature)
    if found is None:
        return None
    tree, head = found
    wraps: list[str] = []
    edits: list[Edit] = []
    watched: dict[str, str] = {}
    positions = {p.name: p.position for p in signature.params}
    for name in arrays:
        pointee = _pointee([t.text for t in head.parameters[positions[name]].declarator], name)
        wrapper = _wrapper(pointee, name, tree, head)
        if not wrapper:
            continue
        place = len(watched)
        kind = " ".join(w for w in pointee if w != "const")
        size = f"{SIZES}[watching::BUFFERS + {3 * place}]"
        wraps.append(f"watching::{wrapper}<{kind}> {name}{{{name}{MEMORY}, {size}, {place}u, watcher}};")
        edits.append(head.rename(name, name + MEMORY))
        watched[name] = wrapper
    thread, extra = _thread(signature)
    edits.append(head.add(f"{extra}device metal::atomic_uint* {LEDGER}, constant uint* {SIZES}"))
    watcher = f" watching::Watcher watcher{{{LEDGER}, {SIZES}, watching::number({thread}, {SIZES})}}; "
    edits.append(head.prepend(watcher + " ".join(wraps)))
    return f'#include "{NAME}"\n{EditedText(source, edits).text}', watched


def _pointee(declarator: list[str], name: str) -> list[str]:
    """Return what ``device const T* name`` points to, as words; an empty list for any other declaration."""
    *words, star, last = declarator if len(declarator) > 2 else ["", "", ""]
    plain = (star, last) == ("*", name) and "device" in words and {"volatile", "*", "&"}.isdisjoint(words)
    return [w for w in words if w != "device"] if plain else []


def _wrapper(pointee: list[str], name: str, tree: Tree, head: KernelHead) -> str:
    """Return which class of `watched.h` watches an array; an empty string for none."""
    if any(w.startswith("atomic") for w in pointee):
        return ATOMICS if "const" not in pointee and _only_indexed(name, tree, *head.body) else ""
    return "Input" if "const" in pointee else OUTPUT if pointee else ""


def _thread(signature: Signature) -> tuple[str, str]:
    """Return an expression for the thread's position in the grid, and the parameter to be added for it."""
    inputs = {i.attribute: i for i in signature.inputs}
    widths = [i.width for what, i in inputs.items() if _SPATIAL.search(what)]
    width = next((w for w in widths if w > 1), 1 if widths else 3)
    given = inputs.get("thread_position_in_grid")
    at = given.name if given else "watch_at"
    kind = f"uint{width}" if width > 1 else "uint"
    extra = "" if given else f"{kind} watch_at [[thread_position_in_grid]], "
    parts = [f"{at}.{axis}" for axis in "xyz"[:width]] if width > 1 else [at]
    return f"metal::uint3({', '.join([*parts, '0', '0'][:3])})", extra


def _only_indexed(name: str, tree: Tree, start: int, end: int) -> bool:
    """Return whether an array of atomics is used by ``atomic_…(&name[i], …)`` and ``atomic_…(name + i, …)`` alone."""
    for i in (k for k in range(start, end) if tree.texts[k] == name):
        call = i - 2 if tree.texts[i - 1] == "&" and tree.texts[i + 1] == "[" else i - 1
        if tree.texts[call] != "(" or not tree.texts[call - 1].startswith("atomic_"):
            return False
        if call == i - 1 and tree.texts[i + 1] != "+":
            return False
    return True
