"""Turn arrays into dispatches: compile the kernels that a plan names, allocate the result, and start the kernels.

Input: arrays whose shapes and dtypes are checked, and a plan. Output: the arrays that the started kernels fill.
Nothing here waits for a kernel. ``programs`` compiles kernels, ``launcher.Launch`` starts them, and ``copying`` makes
the copies that other modules need. Ops are declared in the layer above; this layer does not know them.
"""
