"""The kernel library: one table of ops, and the Metal they run (imported as ``metalnb.library_kernels``).

The Metal is in the folder ``metal``. To be read first, each with its idea in three lines at the top: ``reduce.metal``,
``scan.metal``, ``argreduce.metal``, ``matmul.metal``, ``softmax.metal``, ``norm.metal``, ``sort.metal``,
``gather.metal``, ``random.metal``. Any of them can be included in a cell, ``#include <metalnb/reduce.metal>``, and so
can what they share: ``storage.h``, ``special.h``, ….

Rows, where an op is declared once
    elementary.py arithmetic.py activations.py        elementwise: a line each
    reductions.py placing.py scans.py normal.py       one number of many; running sums; softmax and norms
    linear.py                                         products
    sorting.py searching.py distinct.py               order
    gathering.py scattering.py                        by indices
    creation.py moving.py shapes.py joining.py        arrays from nothing, from others, and views
What a row is, and all of them
    op.py table.py namespace.py numpy_protocols.py
From a call to a dispatch
    elementwise.py formula.py operands.py walk.py     elementwise ops
    folds.py reducing.py                              reductions
    product_plan.py product.py                        products
    indexing.py advanced.py                           x[key]
    dispatch.py build.py bits.py axes.py reshaping.py what they share
Ops of a user's own
    expressions.py monoid.py
What rows are tested, timed and described with
    samples.py reduction_samples.py linear_samples.py describe.py
"""

if __name__ == "library_kernels":
    raise ImportError("the folder library_kernels/ is the package metalnb.library_kernels: import that instead")
