"""`tune`: find the fastest threadgroup and function constants for a kernel and its arguments.

``trials`` lists the configurations, ``sweep`` checks each of them with ``overrun_check`` and times it, ``sweep_view``
renders the results, ``sweep_buttons`` controls the sweep, and ``tuner`` joins them. Everything runs on copies; only
`Tuner.apply` changes something: the kernel's default threadgroup.
"""

from .tuner import Tuner, tune

__all__ = ["Tuner", "tune"]
