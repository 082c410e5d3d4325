"""Elementwise ops: each element of the result is computed from one element of each operand.

Input: rows (a name, an MSL expression, a NumPy reference) in ``unary``, ``binary`` and ``ternary``, and a user's own
expressions in ``custom_elementwise``. Output: `Elementwise` ops; each call is one dispatch. To add an op, add
a line to the rows. ``elementwise_by_name`` finds ops for other ops to call, ``elementwise_text`` writes the kernels'
source, ``operands`` promotes and broadcasts.
"""
