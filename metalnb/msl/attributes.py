"""The one table of MSL's attributes: which there are, whether they take an argument, where they may stand.

Source: Metal Shading Language specification, 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ATTRIBUTES", "INPUTS", "STANDARD", "Attribute"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute.

    Attributes
    ----------
    name : str
    argument : bool
        True when it takes one in parentheses.
    widths : tuple of int
        For a kernel input: the numbers of components its type may have.
    use : {"parameter", "input", "function", "constant", "graphics"}
        What it is for.
    since : str
        The version of MSL that brought it.
    """

    name: str
    use: str
    argument: bool = False
    widths: tuple[int, ...] = ()
    since: str = "1.0"


def _input(name: str, *widths: int, since: str = "1.0") -> Attribute:
    return Attribute(name, "input", widths=widths, since=since)


_TABLE = (
    # 5.2.1 arguments
    Attribute("buffer", "parameter", argument=True),
    Attribute("threadgroup", "parameter", argument=True),
    Attribute("texture", "graphics", argument=True),
    Attribute("sampler", "graphics", argument=True),
    # 5.2.3.6 kernel inputs
    _input("thread_position_in_grid", 1, 2, 3),
    _input("thread_position_in_threadgroup", 1, 2, 3),
    _input("threadgroup_position_in_grid", 1, 2, 3),
    _input("threads_per_grid", 1, 2, 3),
    _input("threads_per_threadgroup", 1, 2, 3),
    _input("dispatch_threads_per_threadgroup", 1, 2, 3),
    _input("threadgroups_per_grid", 1, 2, 3),
    _input("grid_origin", 1, 2, 3, since="1.2"),
    _input("grid_size", 1, 2, 3, since="1.2"),
    _input("thread_index_in_threadgroup", 1),
    _input("thread_index_in_simdgroup", 1, since="2.0"),
    _input("simdgroup_index_in_threadgroup", 1, since="2.0"),
    _input("threads_per_simdgroup", 1, since="2.0"),
    _input("simdgroups_per_threadgroup", 1, since="2.0"),
    _input("dispatch_simdgroups_per_threadgroup", 1, since="2.0"),
    _input("thread_execution_width", 1),
    _input("thread_index_in_quadgroup", 1, since="2.0"),
    _input("quadgroup_index_in_threadgroup", 1, since="2.0"),
    _input("quadgroups_per_threadgroup", 1, since="2.0"),
    _input("dispatch_quadgroups_per_threadgroup", 1, since="2.0"),
    # 5.1 functions
    Attribute("kernel", "function", since="2.3"),
    Attribute("host_name", "function", argument=True, since="2.2"),
    Attribute("max_total_threads_per_threadgroup", "function", argument=True),
    Attribute("visible", "graphics", since="2.3"),
    Attribute("vertex", "graphics", since="2.3"),
    Attribute("fragment", "graphics", since="2.3"),
    # 5.8.1 function constants
    Attribute("function_constant", "constant", argument=True, since="1.2"),
    # 5.2.3 vertex and fragment functions
    *(Attribute(name, "graphics") for name in (
        "stage_in", "position", "point_size", "vertex_id", "instance_id", "flat", "center_perspective", "point_coord",
        "front_facing", "early_fragment_tests", "render_target_array_index", "amplification_id", "base_vertex",
    )),
    *(Attribute(name, "graphics", argument=True) for name in (
        "attribute", "color", "user", "depth", "patch", "raster_order_group", "id", "clip_distance", "payload",
    )),
)  # fmt: skip

ATTRIBUTES = {a.name: a for a in _TABLE}
INPUTS = {a.name: a for a in _TABLE if a.use == "input"}

# C++'s own, which the compiler reads itself.
STANDARD = frozenset({
    "deprecated", "fallthrough", "likely", "unlikely", "maybe_unused", "nodiscard", "noreturn", "no_unique_address",
})  # fmt: skip
