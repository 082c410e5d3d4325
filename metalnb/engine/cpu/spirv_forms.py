"""The forms in which kernels are handed to the CPU runtime's compiler, and how one is known to be right.

clang reads a kernel and tidies it; the optimising is left to the device's compiler, which does it all again anyway.
What clang's loop passes add is not only of no use there: they narrow counters to integers of 2 or 65 bits, which its
SPIR-V backend writes wrongly or not at all, and they leave loops in shapes that the device's vectoriser takes for
others. So they do not run. That no integer of another width than 8, 16, 32 or 64 bits reaches the backend is checked
for every kernel, in the intermediate code; and that no truth is taken for a signed number of one bit there and made a
float: that is -1, as of ``float(i < n ? -1 : 0)``, and the backend writes 1.

The forms are a ladder: the next one is tried when clang's backend or the device refuses a kernel in the one before, or
when it has such integers. docs/handing-over.md tells what else was tried, with figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..clang import driver
from ..clang.driver import DUMP, Target
from ..unit import Unit

__all__ = ["FORMS", "MEETING", "OPTIMISED", "Form", "odd_width", "printed", "spirv"]


@dataclass(frozen=True, slots=True)
class Form:
    """A way to compile a kernel to SPIR-V.

    Attributes
    ----------
    name : str
    flags : tuple of str
        clang's.
    """

    name: str
    flags: tuple[str, ...]


# Passes of clang's -O2 that do not run, by clang's names for them.
_LOOPS = (
    "licm", "simple-loop-unswitch", "loop-rotate", "indvars", "loop-idiom", "loop-unroll", "loop-unroll-full",
    "loop-deletion", "loop-instsimplify", "loop-simplifycfg", "loop-distribute", "loop-load-elim", "loop-sink",
)  # fmt: skip
_VECTORS = ("loop-vectorize", "slp-vectorizer", "vector-combine")
_VALUES = (
    "tailcallelim", "jump-threading", "correlated-propagation", "constraint-elimination", "gvn", "sccp", "ipsccp",
    "bdce", "dse", "speculative-execution", "aggressive-instcombine", "reassociate", "mldst-motion", "memcpyopt",
    "float2int", "div-rem-pairs", "mergeicmps", "expand-memcmp", "consthoist", "codegenprepare",
    "spirv-prelegalizer-combiner",
)  # fmt: skip
# What runs behind these, and has switches of its own: loop strength reduction, which narrows counters too, and what the
# backend optimises. Its tables do not tell it which instructions must stay where they are: it took a division out of
# the branch that guards it against 0, and out of a loop.
_BEHIND = (
    "-disable-lsr", "-disable-machine-licm", "-disable-machine-cse", "-disable-machine-sink",
    "-disable-early-taildup", "-disable-tail-duplicate",
)  # fmt: skip


def _without(*passes: str) -> tuple[str, ...]:
    switches = (f"-opt-disable={','.join(passes)}", *_BEHIND)
    return ("-O2", *(word for switch in switches for word in ("-mllvm", switch)))


_IDIOMS = ("loop-idiom",)  # copies in place of loops: SPIR-V has none between places that overlap
_TIDY = (*_LOOPS, *_VECTORS, *_VALUES)
TIDY = Form("tidy", _without(*_TIDY))
# Nearer to the author's text: what the tidying makes of comparisons the device refuses now and then.
PLAIN = Form("plain", _without(*_TIDY, "instcombine"))
OPTIMISED = Form("optimised", _without(*_IDIOMS))
# Branches as the author wrote them: some with SIMD functions, in a loop, the device vectorises in no other form.
BRANCHES = Form("branches", _without(*_TIDY, "simplifycfg"))

FORMS = (TIDY, PLAIN, OPTIMISED, BRANCHES)
# For kernels with a threadgroup barrier. Of a loop with a barrier in it that stands as the author wrote it, the runtime
# takes the counter for one of the whole threadgroup, and each of its SIMD-groups counts it on.
MEETING = (OPTIMISED, TIDY, PLAIN, BRANCHES)

# clang prints what its SPIR-V backend is about to be given, at no cost in time.
_PRINTED = ("-mllvm", "-print-before=spirv-regularizer")
_NAMES = re.compile(r'[%@!][-\w.$]+|[%@]?"[^"\n]*"|;[^\n]*')
_INTEGER = re.compile(r"\bi(\d+)\b")
_WIDTHS = frozenset({"1", "8", "16", "32", "64"})  # of 1 bit: a bool
_SIGNED_TRUTH = re.compile(r"\bsitofp (?:<\d+ x )?i1\b")  # made by instcombine: the form `plain` has none


def odd_width(text: str) -> int:
    """Return the width of an integer in clang's printed intermediate code that SPIR-V does not have; 0 for none."""
    _, mark, code = text.partition(DUMP)
    found = set(_INTEGER.findall(_NAMES.sub("", code))) - _WIDTHS if mark else set()
    return int(min(found, default="0"))


# What the MSL headers use of SPIR-V beyond its core.
_TARGET = Target(
    "spirv",
    Path(__file__).parent / "prelude.h",
    (
        "--target=spirv64-unknown-unknown",
        "-mllvm", "-spirv-ext=+SPV_KHR_subgroup_rotate,+SPV_EXT_shader_atomic_float_add,+SPV_KHR_bit_instructions",
    ),
)  # fmt: skip


def spirv(unit: Unit, text: str, form: Form = FORMS[0]) -> bytes:
    """Compile a lowered text to SPIR-V in a form.

    Raises
    ------
    CompileError
        When the text is wrong.
    Refused
        When clang's backend cannot write it in this form, or would write it wrongly; another form may do.
    """
    return driver.compiled(unit, text, _TARGET, *form.flags, *_PRINTED, check=_odd)


def printed(unit: Unit, text: str, form: Form) -> str:
    """Return clang's intermediate code for a lowered text, with the lines of its instructions."""
    return driver.printed(unit, text, _TARGET, *form.flags, *_PRINTED, "-mllvm", "-print-module-scope", *_LINES)


_LINES = ("-gline-tables-only",)


def _odd(text: str) -> str:
    width = odd_width(text)
    if width:
        return f"clang made an integer of {width} bits, which SPIR-V does not have"
    if _SIGNED_TRUTH.search(text.partition(DUMP)[2]):
        return "clang made a float of a signed number of one bit, which its backend takes for an unsigned one"
    return ""
