"""Sample calls for testing and timing the ops: `samples_of` and `bench_of` take an op and return calls of it.

Comes in: an op of the table. Goes out: NumPy arrays and options, as `Sample`. Only tests and benchmarks import this
folder; no other part of the package does. An elementwise op needs nothing here: its samples follow from its row. Any
other op has an entry in the ``SAMPLES`` of one of these files, and one in ``BENCH`` if it is to be timed.
"""
