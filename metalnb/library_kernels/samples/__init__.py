"""Sample calls for testing and timing the ops: `samples_of` and `bench_of` take an op and return calls of it.

Input: an op of the table. Output: NumPy arrays and options, as `Sample`. Only tests and benchmarks import this
folder; no other part of the package does. Elementwise ops need no samples here: they follow from the op's row. Any
other op has an entry in the ``SAMPLES`` of one of these files, and one in ``BENCH`` if it should be timed.
"""
