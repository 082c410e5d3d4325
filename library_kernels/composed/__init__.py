"""Ops that are made of other ops, or of one more kernel: NumPy's names beyond the array API.

Comes in: what a caller gives to a function of NumPy's name. Goes out: arrays. Each is a row under the decorator `op`,
as in ``ops``, and may call anything in ``ops`` and ``elementwise``; where passes over memory would cost more than twice
one kernel's, it has a kernel of its own in ``metal``. A new file is named in ``MODULES`` of ``table.py``.
"""
