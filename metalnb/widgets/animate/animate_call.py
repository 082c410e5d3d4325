"""`animate`: check a call, and build its widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

from ..bound_call import BoundCall, bound_call
from ..knobs import free_knobs, set_ranges
from ..painter import Painter, check_numbers
from .animation import Animation
from .brush import Brush
from .frames import Frames
from .simulation import Simulation, swap_pairs

__all__ = ["animate"]

_MAX_RATE = 60  # a screen's rate


def animate(  # noqa: PLR0913  (the options of a simulation and its picture)
    kernel: Any,
    /,
    *args: Any,
    swap: Any = None,
    steps: int = 1,
    rate: float = 30,
    picture: str | Callable[[SimpleNamespace], Any] | None = None,
    draw: str | bool | None = None,
    brush: Any = None,
    ranges: Mapping[str, Any] | None = None,
    colors: str = "magma",
    limits: tuple[float, float] | None = None,
    origin: str = "upper",
    play: bool = False,
    **launch: Any,
) -> Animation:
    """Run a kernel repeatedly on its own results, and show the state as a moving picture.

    Parameters
    ----------
    kernel : Kernel
        A kernel that computes one step of a simulation.
    *args, **launch
        As for a call of the kernel: the state at the start. The arrays that are passed never change.
    swap : (str, str) or sequence of such pairs, optional
        The array that a step reads and the one that it writes, which are swapped after each step. By default the
        output that the call leaves out, and the one array of its shape that the kernel only reads. A kernel that
        updates its arrays in place needs no swap: ``swap=()``.
    steps : int, optional
        Steps per frame.
    rate : float, optional
        Frames per second, at most 60. A simulation that cannot keep up shows fewer frames.
    picture : str or callable, optional
        The name of the array to show; by default the array that the swap reads, else the first that the kernel writes.
        As for `explore`, its shape is (H, W), (H, W, 3) or (H, W, 4). A function makes the picture of several arrays,
        or of particles: it takes an object with the arrays by name, which it must not change, and returns an array of
        such a shape.
    draw : str or False, optional
        The name of the array that the pointer draws into, of shape (H, W) or (H, W, C); by default the array that is
        shown. False turns drawing off.
    brush : float or sequence of C floats, optional
        The value to draw; by default the greatest number of the array at the start.
    ranges : mapping of str to (low, high) or None, optional
        The range of a scalar's slider, by the scalar's name; None for no slider.
    colors : str, optional
        The name of one of matplotlib's color maps.
    limits : (float, float), optional
        The values at the ends of the color map; by default the smallest and the greatest number so far.
    origin : {"upper", "lower"}, optional
        The position of row 0.
    play : bool, optional
        Whether to start playing at once.

    Returns
    -------
    Animation

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; for arrays that cannot be swapped, shown or drawn into.
    KernelFault
        If the first step fails.

    Examples
    --------
    >>> mnb.animate(heat, start, alpha=0.2, steps=16)   # doctest: +SKIP
    >>> mnb.animate(life, board, swap=("now", "next"), rate=10, colors="gray")   # doctest: +SKIP
    >>> mnb.animate(gray_scott, u, v, swap=[("u", "u2"), ("v", "v2")], picture="v", steps=20)   # doctest: +SKIP
    >>> mnb.animate(bodies, p, v, swap=("p", "p2"), picture=lambda s: np.histogram2d(
    ...     s.p[:, 1], s.p[:, 0], bins=256, range=[(-1, 1), (-1, 1)])[0])   # doctest: +SKIP
    """
    call = bound_call("animate", kernel, args, launch)
    caller = f"animate: {call.kernel.signature.name}"
    if not _is_number(steps) or steps % 1 != 0 or steps < 1:
        raise ArgumentError(f"{caller}: steps is a whole number of at least 1; got {steps!r}.")
    if not _is_number(rate) or not 0 < rate <= _MAX_RATE:
        raise ArgumentError(f"{caller}: rate is in frames per second, above 0 and at most {_MAX_RATE}; got {rate!r}.")
    pairs = swap_pairs(caller, call, swap)
    look = picture if callable(picture) else _picture_source(caller, call, pairs, picture)
    target = _draw_target(caller, call, draw, look)
    knobs = set_ranges("animate", free_knobs(call), ranges)
    simulation = Simulation(call, pairs, None if target is None else _arrays(call)[target])
    first = _look(simulation, look)
    check_numbers(caller, first.dtype)
    painter = Painter(caller, first.shape, colors, limits, origin, keep_limits=True)
    brush_or_none = None if target is None else Brush(caller, target, simulation.array(target), brush)
    frames_apart = max(1, round(rate))  # a second
    frames = Frames(simulation, lambda: _look(simulation, look), painter, brush_or_none, int(steps), frames_apart)
    animation = Animation(frames, knobs, rate)
    if play:
        animation.play()
    return animation


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _arrays(call: BoundCall) -> dict[str, int]:
    return {p.param.name: i for i, p in enumerate(call.parts) if p.is_array}


def _look(simulation: Simulation, source: str | Callable[[SimpleNamespace], Any]) -> Any:
    return simulation.array(source) if isinstance(source, str) else np.asarray(source(simulation.arrays()))


def _picture_source(caller: str, call: BoundCall, pairs: list[tuple[int, int]], picture: str | None) -> str:
    """Find the array to show."""
    names = list(_arrays(call))
    if picture is not None:
        if picture not in names:
            raise ArgumentError(f"{caller}: picture={picture!r} is not an array; the kernel has: {', '.join(names)}.")
        return picture
    if pairs:
        return call.parts[pairs[0][0]].param.name
    writable = [p.param.name for p in call.parts if p.is_array and p.param.writable]
    if not writable:
        raise ArgumentError(f"{caller}: writes no array, so nothing moves.")
    return writable[0]


def _draw_target(caller: str, call: BoundCall, draw: str | bool | None, source: Any) -> str | None:
    """Find the array to draw into."""
    if draw is False or (draw is None and not isinstance(source, str)):
        return None
    arrays = _arrays(call)
    name = source if draw is None or draw is True else draw
    if name not in arrays:
        raise ArgumentError(f"{caller}: draw={draw!r} is not an array; the kernel has: {', '.join(arrays)}.")
    value = call.parts[arrays[name]].value
    if value.ndim not in {2, 3} or not value.size or value.dtype.names:
        rule = "the pointer draws into an array of shape (H, W) or (H, W, C)"
        raise ArgumentError(f"{caller}: draw={name!r}: {rule}; got shape {value.shape}. Pass draw=False for none.")
    return str(name)
