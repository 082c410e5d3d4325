"""The kernel library: one table of ops, and the Metal code that they run (imported as ``metalnb.library_kernels``).

The Metal code is in the folder ``metal``. Read these files first; each begins with its idea and the idea's source:
``reduce.metal``, ``scan.metal``, ``argreduce.metal``, ``matmul.metal``, ``softmax.metal``, ``norm.metal``,
``sort.metal``, ``gather.metal``, ``random.metal``. A cell can include any of them (``#include <metalnb/reduce.metal>``)
and the headers that they share, such as ``storage.h`` and ``special.h``.

A call takes arrays and returns arrays at once; the kernels that fill them may still be running. A call passes through
the folders: the ops are declared by subject, ``planning`` computes dispatches from shapes alone, ``launching`` starts
them.
``samples`` is for tests and benchmarks; no other folder imports it.

elementwise/ shapes/ creation/ indexing/ reductions/ statistics/ sorting/ linear_algebra/ norms/ neural/
    The ops: an elementwise op is a row; any other op is a function under the decorator `op`.
fusion/
    Functions of arrays fused into one kernel.

op.py docstrings.py op_table.py namespace.py
    The definition of an op, its docstring, the table of ops by name, and the names at the top of `metalnb`.
array_methods.py numpy_functions.py numpy_ufuncs.py numpy_ops.py
    The functions that arrays call: operators and methods, NumPy's functions.
"""

if __name__ == "library_kernels":
    raise ImportError("the folder library_kernels/ is the package metalnb.library_kernels: import that instead")
