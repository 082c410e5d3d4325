"""Cells of the engine `metal:metalcompute`."""

import metalnb as mnb
from metalnb.call.kernel import Kernel
from metalnb.program import Program

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def compile_cell(source: str, **options: object) -> Program:
    return mnb.compile(HEAD + source, engine="metal:metalcompute", **options)


def compiled_sizes(kernel: Kernel) -> set:
    """Return the threadgroup sizes that a kernel was compiled for, and "as written"."""
    return {key[0] for key in kernel.binary.functions}
