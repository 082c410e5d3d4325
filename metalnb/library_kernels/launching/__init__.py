"""Turn arrays into dispatches: compile the kernels that a plan names, allocate the result, start.

Input: arrays whose shapes and dtypes are checked, and a plan. Output: the arrays that the started kernels fill;
nothing is waited for. ``launcher.Launch`` starts every planned kernel, ``programs`` compiles all of them, and
``copying`` makes the copies for everything else. Ops are declared in the layer above; nothing here knows them.
"""
