"""Turn arrays into dispatches: compile the kernels that a plan names, allocate the result, start.

Input: arrays whose shapes and dtypes are checked, and a plan. Output: the arrays that the started kernels fill;
nothing is waited for. ``launcher.Launch`` starts every planned kernel, ``programs`` compiles all of them, and
``copying`` has the copy that everything else rests on. Ops are declared above, and are unknown here.
"""
