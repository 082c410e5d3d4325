"""`dashboard`: a kernel's cost, with sliders for size, threadgroup and scalars.

``problem_sizes`` scales the call, ``panel`` is the widget. Everything runs on copies.
"""

from .panel import Dashboard, dashboard

__all__ = ["Dashboard", "dashboard"]
