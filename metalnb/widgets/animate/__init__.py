"""`animate`: show the state that a kernel advances, step by step, as a moving picture.

``animate_call`` checks a call and returns the widget, an `Animation`, with ``player`` for its page. ``simulation`` has
the state, which is a copy of the caller's, and its steps; ``frames`` makes pictures of it; ``frame_clock`` is the
thread that requests them; ``brush`` draws into an array; ``film`` writes frames as GIF, as MP4, and as a strip of
pictures for static pages.
"""

from .animate_call import animate
from .animation import Animation

__all__ = ["Animation", "animate"]
