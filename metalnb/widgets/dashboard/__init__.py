"""`dashboard`: a kernel's cost, with sliders for size, threadgroup and scalars.

``problem_sizes`` makes the same call larger and smaller, ``panel`` is the widget. Everything runs on copies.
"""

from .panel import Dashboard, dashboard

__all__ = ["Dashboard", "dashboard"]
