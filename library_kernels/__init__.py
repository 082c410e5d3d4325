"""The kernel library: one table of ops, and the Metal they run (imported as ``metalnb.library_kernels``).

The Metal is in the folder ``metal``. To be read first, each with its idea in three lines at the top: ``reduce.metal``,
``scan.metal``, ``argreduce.metal``, ``matmul.metal``, ``softmax.metal``, ``norm.metal``, ``sort.metal``,
``gather.metal``, ``random.metal``. Any of them can be included in a cell, ``#include <metalnb/reduce.metal>``, and so
can what they share: ``storage.h``, ``special.h``, ….

Input: arrays and a call. Output: arrays, filled by kernels that have been started. A call goes down through the
folders: the ops are declared by subject, ``planning`` works out dispatches from shapes alone, ``launching`` starts
them. ``samples`` is for tests and benchmarks; no other folder imports it.

elementwise/ shapes/ creation/ indexing/ reductions/ statistics/ sorting/ linear_algebra/ norms/ neural/
    The ops: an elementwise op is a row, any other a function under the decorator `op`.
fusion/
    Functions of arrays made one kernel.

op.py docstrings.py table.py namespace.py
    What an op is, what its docstring says, all of them by name, and the names at the top of `metalnb`.
array_methods.py numpy_protocols.py
    What arrays call: operators and methods, NumPy's functions.
"""

if __name__ == "library_kernels":
    raise ImportError("the folder library_kernels/ is the package metalnb.library_kernels: import that instead")
