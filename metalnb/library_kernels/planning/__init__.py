"""Plans, which determine the kernels to run, their grids and their records. Plans contain only numbers.

Input: shapes, strides, offsets and sizes. Output: frozen records that ``launching`` executes, including the bytes that
a kernel reads as its struct. Nothing here depends on arrays, engines or programs, so plans can be tested without them.
The structs mirror those of the files in ``metal``; change both together.
"""
