"""`dashboard`: a kernel and its arguments in; its cost under sliders for size, threadgroup and scalars out.

``problem_sizes`` makes the same call larger and smaller, ``panel`` is the widget. Everything runs on copies.
"""

from .panel import Dashboard, dashboard

__all__ = ["Dashboard", "dashboard"]
