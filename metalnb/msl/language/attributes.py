"""The table of MSL's attributes: their names, whether they take an argument, and where they may appear.

Source: Metal Shading Language specification, version 4, chapters 2 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ATTRIBUTES", "INPUTS", "MEANT", "PASSED_OVER", "STANDARD", "Attribute"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute.

    Attributes
    ----------
    name : str
    argument : bool
        True if it takes an argument in parentheses.
    widths : tuple of int
        The numbers of components that a kernel input's type may have.
    use : {"parameter", "input", "function", "constant", "graphics"}
        Where the attribute belongs; "graphics" is everything except kernels on buffers.
    since : str
        The version of MSL, on macOS, that introduced it.
    section : str
    """

    name: str
    use: str
    argument: bool = False
    widths: tuple[int, ...] = ()
    since: str = "1.0"
    section: str = ""


def _input(name: str, *widths: int, since: str = "1.0") -> Attribute:
    return Attribute(name, "input", widths=widths, since=since, section="5.2.3.6")


def _graphics(section: str, names: str, *, argument: bool = False) -> tuple[Attribute, ...]:
    return tuple(Attribute(name, "graphics", argument=argument, section=section) for name in names.split())


_TABLE = (
    Attribute("buffer", "parameter", argument=True, section="5.2.1"),
    Attribute("threadgroup", "parameter", argument=True, section="5.2.1"),
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
    _input("thread_index_in_quadgroup", 1, since="2.1"),
    _input("quadgroup_index_in_threadgroup", 1, since="2.1"),
    _input("quadgroups_per_threadgroup", 1, since="2.1"),
    _input("dispatch_quadgroups_per_threadgroup", 1, since="2.1"),
    Attribute("kernel", "function", since="2.3", section="5.1.3"),
    Attribute("max_total_threads_per_threadgroup", "function", argument=True, section="5.1.3"),
    Attribute("host_name", "function", argument=True, since="2.2", section="5.1.10"),
    Attribute("function_constant", "constant", argument=True, since="1.2", section="5.8.1"),
    # Textures, samplers and argument buffers; and per-thread inputs, whose layout a vertex descriptor gives.
    *_graphics("5.2.1", "texture sampler", argument=True),
    *_graphics("2.13", "id", argument=True),
    *_graphics("5.2.2", "attribute", argument=True),
    *_graphics("5.2.4", "stage_in"),
    # Functions of other stages, and functions linked at run time.
    *_graphics("5.1", "vertex fragment object mesh early_fragment_tests"),
    *_graphics("5.1", "intersection patch max_total_threadgroups_per_mesh_grid", argument=True),
    *_graphics("5.1.4, 5.1.5", "visible stitchable"),
    *_graphics("5.1.12", "user_annotation", argument=True),
    *_graphics("2.16", "function_groups", argument=True),
    # Inputs and outputs of other stages.
    *_graphics("5.2.3.1", "amplification_count amplification_id base_instance base_vertex instance_id vertex_id"),
    *_graphics("5.2.3.2", "patch_id position_in_patch"),
    *_graphics("5.2.3.3", "clip_distance invariant point_size position render_target_array_index shared "
                          "viewport_array_index"),
    *_graphics("5.2.3.4", "barycentric_coord front_facing pixel_position_in_tile pixels_per_tile point_coord "
                          "post_depth_coverage primitive_id sample_id sample_mask tile_index"),
    *_graphics("5.2.3.5", "stencil"),
    *_graphics("5.2.3.5", "color depth index", argument=True),
    *_graphics("5.2.3.7", "origin direction min_distance max_distance payload geometry_id world_space_origin "
                          "world_space_direction distance opaque instance_intersection_function_table_offset "
                          "geometry_intersection_function_table_offset user_instance_id time motion_start_time "
                          "motion_end_time key_frame_count object_to_world_transform world_to_object_transform "
                          "primitive_data curve_parameter"),
    *_graphics("5.2.3.8", "accept_intersection continue_search"),
    # Interpolation, imageblocks and raster order.
    *_graphics("5.4", "center_perspective center_no_perspective centroid_perspective centroid_no_perspective "
                      "sample_perspective sample_no_perspective flat"),
    *_graphics("5.6", "alias_implicit_imageblock"),
    *_graphics("5.6", "alias_implicit_imageblock_color imageblock_data user", argument=True),
    *_graphics("5.2.1.2", "raster_order_group", argument=True),
)  # fmt: skip

ATTRIBUTES = {a.name: a for a in _TABLE}
INPUTS = {a.name: a for a in _TABLE if a.use == "input"}

# C++'s own attributes, which the compiler handles.
STANDARD = frozenset({
    "deprecated", "fallthrough", "likely", "unlikely", "maybe_unused", "nodiscard", "noreturn", "no_unique_address",
})  # fmt: skip

# Apple's compiler accepts these beside [[buffer(n)]], with an argument; the specification allows them only for
# textures.
PASSED_OVER = frozenset({"access"})

# Names that authors guess before they know Metal's; a suggestion by spelling alone would be the wrong attribute.
MEANT = {
    word: name
    for name, words in {
        "thread_position_in_grid": "gid thread_id thread_index thread_index_in_grid global_id",
        "thread_position_in_threadgroup": "tid local_id thread_position_in_group",
        "threadgroup_position_in_grid": "threadgroup_id threadgroup_index group_id block_id",
        "threads_per_threadgroup": "threadgroup_size group_size",
        "thread_index_in_simdgroup": "lane_id simd_lane_id",
        "simdgroup_index_in_threadgroup": "simdgroup_id simd_group_id",
        "function_constant": "constant_id",
    }.items()
    for word in words.split()
}
