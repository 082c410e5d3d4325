"""Names of MSL that metalnb does not support, each with the message for a cell that uses it.

Source: Metal Shading Language specification, version 4. A cell may define any of these names as its own.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

__all__ = ["UNSUPPORTED", "Unsupported", "answer", "declarator", "is_refusal", "refusal"]

_BUFFERS = "metalnb runs compute kernels on buffers"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A group of names.

    Attributes
    ----------
    section, since : str
        The section of the specification, and the version of MSL that introduced the names.
    title : str
    names : tuple of str
    reason : str
        Why a cell cannot use them.
    cure : str
        What to do instead.
    apple : bool
        True for names that Apple's compiler does not allow in a kernel either.
    """

    section: str
    since: str
    title: str
    names: tuple[str, ...]
    reason: str
    cure: str
    apple: bool = False


def _group(
    section: str, since: str, title: str, names: str, reason: str, cure: str, *, apple: bool = False,
) -> Unsupported:  # fmt: skip
    return Unsupported(section, since, title, tuple(names.split()), reason, cure, apple)


_GRAPHICS = "it belongs to the graphics pipeline, and metalnb runs compute kernels"
_CURVES = " ".join(f"{shape}{part}" for shape in ("bezier", "bspline", "hermite", "catmull_rom")
                   for part in ("", "_derivative", "_second_derivative"))  # fmt: skip

UNSUPPORTED = (
    _group("2.7", "2.3", "Pixel data types",
           "r8unorm r8snorm r16unorm r16snorm rg8unorm rg8snorm rg16unorm rg16snorm rgba8unorm srgba8unorm rgba8snorm "
           "rgba16unorm rgba16snorm rgb10a2 rg11b10f rgb9e5",
           "metalnb has no pixel data types yet",
           "keep the pixels as integers and convert them with functions such as unpack_unorm4x8_to_float (MSL 6.14)"),
    _group("2.9, 6.12", "1.0", "Textures",
           "texture1d texture1d_array texture2d texture2d_array texture3d texturecube texturecube_array texture2d_ms "
           "texture2d_ms_array depth2d depth2d_array depthcube depthcube_array depth2d_ms depth2d_ms_array "
           "texture_buffer",
           _BUFFERS, "pass the pixels in a device or constant buffer"),
    _group("2.10", "1.0", "Samplers", "sampler", _BUFFERS, "pass the pixels in a device or constant buffer"),
    _group("2.11, 6.13", "2.3", "Imageblocks", "imageblock imageblock_slice threadgroup_imageblock",
           _BUFFERS, "pass the pixels in a device or constant buffer"),
    _group("2.15", "2.3", "Visible functions", "visible_function_table",
           "a cell is a complete program, linked with no other",
           "call the function by its name, or make it a template's argument"),
    _group("2.17, 6.18", "2.3", "Ray tracing", "raytracing ray_data",
           "metalnb has no acceleration structures", "intersect the rays in the kernel itself"),
    _group("2.18, 6.11", "2.3", "Pull-model interpolation", "interpolant", _GRAPHICS, "pass the values in a buffer",
           apple=True),
    _group("2.20", "3.0", "Mesh shading", "mesh mesh_grid_properties object_data", _GRAPHICS,
           "pass the values in a buffer", apple=True),
    _group("2.21, 7", "4.0", "Tensors", "tensor tensor_handle tensor_inline cooperative_tensor extents dextents mpp",
           "it needs MSL 4, and metalnb reads MSL 3.2",
           "pass the elements in a buffer; multiply with simdgroup_matrix (MSL 6.7)"),
    _group("4.8", "3.2", "Device coherence", "coherent",
           "metalnb promises no coherence between the threadgroups of a dispatch",
           "communicate through atomic functions, or in a second dispatch (MSL 6.15)"),
    _group("6.9", "2.1", "Helper threads", "simd_is_helper_thread quad_is_helper_thread",
           "only fragment functions have helper threads",
           "drop it: in a kernel it would be false (MSL 6.9.2)", apple=True),
    _group("6.10", "1.0", "Fragment functions", "dfdx dfdy fwidth get_num_samples get_sample_position discard_fragment",
           _GRAPHICS, "take differences of neighboring values with quad_shuffle_xor (MSL 6.9.3)", apple=True),
    _group("6.14", "4.0", "Packing of signed 10a2 colors",
           "pack_float_to_snorm10a2 pack_half_to_snorm10a2 unpack_snorm10a2_to_float unpack_snorm10a2_to_half",
           "it needs MSL 4, and metalnb reads MSL 3.2", "shift and mask the fields"),
    _group("6.16", "2.1", "Indirect command buffers", "command_buffer render_command compute_command",
           "commands are encoded by the host", "call the next kernel from Python"),
    _group("6.17", "2.3", "Rasterization rates", "rasterization_rate_map_decoder rasterization_rate_map_data",
           _GRAPHICS, "pass the values in a buffer"),
    _group("6.18.7", "3.1", "Curves",
           _CURVES,
           "metalnb has no curves, which belong to ray tracing", "write the polynomial: it is one line with fma"),
)  # fmt: skip

_BY_NAME = {name: group for group in UNSUPPORTED for name in group.names}

# The compiler's message about an undeclared name.
_UNKNOWN = re.compile(
    r"(?:use of undeclared identifier|unknown type name|no (?:template|type|member) named) '(\w+)'",
)


def answer(message: str) -> tuple[str, str] | None:
    """Return a message and a hint if the compiler's message is about an unsupported name."""
    match = _UNKNOWN.search(message)
    return refusal(match[1]) if match and match[1] in _BY_NAME else None


def refusal(name: str) -> tuple[str, str]:
    """Return the message and the hint for an unsupported name."""
    group = _BY_NAME[name]
    return f"'{name}'{_REFUSED}{group.reason}", group.cure


def is_refusal(message: str) -> bool:
    """Return whether a message comes from `refusal`."""
    return _REFUSED in message


_REFUSED = " is not available: "

# Words in the declarations of textures and samplers that the parser reports first.
_PARTS = frozenset("""
    access address border_color compare_func coord filter lod_clamp mag_filter max_anisotropy min_filter mip_filter
    r_address reduction s_address t_address
""".split())  # noqa: SIM905  (a page of names)


def declarator(message: str, text_before: str) -> re.Match[str] | None:
    """Find the texture or sampler whose declaration a message is about.

    Parameters
    ----------
    message : str
        The compiler's message.
    text_before : str
        The text up to the message's position.
    """
    match = _UNKNOWN.search(message)
    if match is None or match[1] not in _PARTS:
        return None
    return next(reversed(list(_declaration_pattern().finditer(text_before))), None)


@functools.cache
def _declaration_pattern() -> re.Pattern[str]:
    """Return the pattern of the last name of a texture or sampler in an unfinished statement."""
    names = (name for group in UNSUPPORTED if group.title in {"Textures", "Samplers"} for name in group.names)
    return re.compile(rf"\b(?:{'|'.join(names)})\b(?=[^;{{}}]*\Z)")
