"""MSL for compute kernels on buffers: every type, attribute, function, constant and macro, by section.

Sections are those of the Metal Shading Language specification, version 4; a version is that of MSL on macOS that
introduced the name. Unsupported features are read from ``metalnb/msl/language/unsupported.py``, attributes from
``metalnb/msl/language/attributes.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msl.functions import INTEGERS, REALS, Integer, Real

from metalnb.msl.language.attributes import ATTRIBUTES, Attribute

__all__ = ["CHAPTERS", "Chapter", "Entry", "uses"]

Kind = Literal["function", "word", "attribute"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Names that share a row of the page.

    Attributes
    ----------
    names : tuple of str
    since : str
    note : str
        Restrictions in the specification, or other names there.
    lack : str
        Why a cell does not find it; empty if it is supported.
    """

    names: tuple[str, ...]
    since: str
    note: str = ""
    lack: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A section of the specification.

    Attributes
    ----------
    section, title : str
    kind : {"function", "word", "attribute"}
        How a name must appear in a cell to count as used: called, anywhere, or in double brackets.
    tests : tuple of str
        Tests that cover its names, ``file`` or ``file::function``: a name's test is the first that uses it.
    entries : tuple of Entry
    """

    section: str
    title: str
    kind: Kind
    tests: tuple[str, ...]
    entries: tuple[Entry, ...]


def uses(kind: Kind, name: str) -> re.Pattern[str]:
    """Return the pattern that matches a cell in which a name is used."""
    word = rf"(?<!\w){re.escape(name)}"
    return re.compile({
        "function": rf"{word}\s*[(<]", "word": rf"{word}(?!\w)", "attribute": rf"\[\[[^\]]*{word}(?!\w)",
    }[kind])  # fmt: skip


def _each(names: str, since: str = "1.0", note: str = "") -> tuple[Entry, ...]:
    return tuple(Entry((name,), since, note) for name in names.split())


def _tried(names: str, table: Sequence[Real | Integer]) -> tuple[Entry, ...]:
    """Return entries with versions from the tables that test the functions."""
    since = {row.name: row.since for row in table}
    return tuple(Entry((name,), since.get(name, "1.0")) for name in names.split())


def _row(names: str, since: str = "1.0", note: str = "") -> Entry:
    return Entry(tuple(names.split()), since, note)


def _vectors(prefix: str, kinds: str, since: str) -> tuple[Entry, ...]:
    return tuple(_row(" ".join(f"{prefix}{kind}{n}" for n in (2, 3, 4)), since) for kind in kinds.split())


def _matrices(kind: str) -> Entry:
    return _row(" ".join(f"{kind}{columns}x{rows}" for columns in (2, 3, 4) for rows in (2, 3, 4)))


def _attributes(use: str) -> tuple[Entry, ...]:
    def note(a: Attribute) -> str:
        kinds = ("uint", "ushort") if a.widths else ()
        return ", ".join(f"{kind}{'' if n == 1 else n}" for kind in kinds for n in a.widths)

    return tuple(Entry((a.name,), a.since, note(a)) for a in ATTRIBUTES.values() if a.use == use)


_FUNCTIONS = "test_functions.py::test_"
_TYPES = ("test_types.py::test_layout", "test_types.py::test_values")
_GROUPS = ("test_groups.py::test_simd_functions_cover_active_threads", "test_groups.py::test_votes")
_CONSTANTS = ("test_constants.py::test_constants_are_rounded_from_the_exact_values",)
_LOGARITHMS = "E LOG2E LOG10E LN2 LN10 PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI SQRT2 SQRT1_2"


def _constants(suffix: str, limits: str, since: str) -> tuple[Entry, ...]:
    return (*_each(limits, since), *_each(" ".join(f"M_{name}_{suffix}" for name in _LOGARITHMS.split()), since))


_PREPROCESSOR = Chapter("1.6.2", "Preprocessor definitions", "word", ("test_language.py", "test_constants.py"), (
    *_each("__METAL_VERSION__"), *_each("__METAL__", "3.0"),
    Entry(("__METAL_MACOS__", "__METAL_IOS__"), "1.0",
          lack="not defined, as by Apple's compiler since MSL 3.0: cells are in the one language of all systems"),
))  # fmt: skip

_PRAGMAS = Chapter("1.6.3", "Pragmas", "word", ("test_unsupported_features.py",), (
    Entry(("#pragma METAL fp math_mode", "#pragma METAL fp contract"), "3.2",
          lack="ignored: the mode of the whole cell is `math=`, and `precise::` and `fast::` choose for one call"),
))  # fmt: skip

_SCALARS = Chapter("2.1", "Scalar types", "word", _TYPES, (
    _row("bool"), _row("char int8_t"), _row("uchar uint8_t"), _row("short int16_t"), _row("ushort uint16_t"),
    _row("int int32_t"), _row("uint uint32_t"), _row("long int64_t", "2.2", "in buffers 2.3"),
    _row("ulong uint64_t", "2.2", "in buffers 2.3"), _row("half"), _row("bfloat", "3.1"), _row("float"),
    _row("size_t"), _row("ptrdiff_t"), _row("void"),
))  # fmt: skip

_VECTORS = Chapter("2.2", "Vector types", "word", _TYPES, (
    *_vectors("", "bool char uchar short ushort int uint", "1.0"), *_vectors("", "long ulong", "2.2"),
    *_vectors("", "half", "1.0"), *_vectors("", "bfloat", "3.1"), *_vectors("", "float", "1.0"), _row("vec"),
))  # fmt: skip

_PACKED = Chapter("2.2.3", "Packed vector types", "word", (*_TYPES, "test_vectors.py::test_reads"), (
    *_vectors("packed_", "char uchar short ushort int uint half", "1.0"), *_vectors("packed_", "bfloat", "3.1"),
    *_vectors("packed_", "float", "1.0"), *_vectors("packed_", "long ulong", "2.3"), _row("packed_vec"),
))  # fmt: skip

_MATRICES = Chapter(
    "2.3", "Matrix types", "word",
    ("test_matrices.py::test_layout", "test_matrices.py::test_reads"),
    (_matrices("half"), _matrices("float"), _row("matrix")),
)  # fmt: skip

_SIMDGROUP_MATRICES = Chapter("2.4", "SIMD-group matrix types", "word", (
    "test_simdgroup_matrix.py::test_load_and_store_at_an_origin_with_a_stride_and_transposed",
    "test_simdgroup_matrix.py",
), (
    *_each("simdgroup_matrix simdgroup_half8x8 simdgroup_float8x8", "2.3"), *_each("simdgroup_bfloat8x8", "3.1"),
))  # fmt: skip

_ATOMIC_TYPES = Chapter("2.6", "Atomic types", "word", (
    "test_atomics.py::test_every_modification_happens_once", "test_atomics.py::test_floats_are_added_and_subtracted",
    "test_atomics.py::test_ulong_minimum_and_maximum", "test_atomics.py::test_exchange_and_compare",
    "test_atomics.py::test_a_histogram_in_threadgroup_memory", "test_fences.py",
), (
    *_each("atomic_int atomic_uint"), *_each("atomic_bool atomic_ulong", "2.4"), *_each("atomic_float", "3.0"),
    *_each("atomic", "2.4"),
))  # fmt: skip

_OTHER_TYPES = Chapter("2.5, 2.12, 2.14, 2.22", "Alignment, arrays, uniform values, reinterpretation", "word", (
    "test_types.py::test_values", "test_constants.py",
), (
    *_each("alignas"), *_each("array", "2.0"), *_each("uniform make_uniform", "2.0"), *_each("as_type"),
))  # fmt: skip

_SPACES = Chapter("4", "Address spaces", "word", ("test_language.py::test_address_spaces",), (
    *_each("device constant thread threadgroup"),
))  # fmt: skip

_ATTRIBUTES = tuple(
    Chapter(section, title, "attribute", (
        "test_entry_points.py", "test_threadgroup_arguments.py",
    ), _attributes(use)) for section, title, use in (
        ("5.2.1", "Attributes of buffers", "parameter"),
        ("5.2.3.6", "Attributes of kernel inputs", "input"),
        ("5.1.3, 5.1.10", "Attributes of kernels", "function"),
        ("5.8.1", "Attributes of function constants", "constant"),
    )
)  # fmt: skip

_FUNCTION_WORDS = Chapter("5.1, 5.8.1", "Words for kernels and function constants", "word", (
    "test_entry_points.py",
), (*_each("kernel"), *_each("is_function_constant_defined", "1.2")))

_PROGRAM_SCOPE = Chapter("5.9", "Inputs and buffers at program scope", "word", ("test_scope_inputs.py",), (
    Entry(("uint3 gid [[thread_position_in_grid]];",), "3.1"),
    Entry(("device float* x [[buffer(0)]];",), "3.2", lack="refused: pass buffers as arguments of the kernel"),
))

_COMMON = Chapter("6.2", "Common functions", "function", (f"{_FUNCTIONS}reals_keep_their_bounds",),
                  _tried("clamp mix saturate sign smoothstep step", REALS))

_INTEGER = Chapter("6.3", "Integer functions", "function", (f"{_FUNCTIONS}integers_are_exact",), _tried(
    "abs absdiff addsat clamp clz ctz extract_bits hadd insert_bits mad24 madhi madsat max max3 median3 min min3 mul24 "
    "mulhi popcount reverse_bits rhadd rotate subsat", INTEGERS))

_RELATIONAL = Chapter("6.4", "Relational functions", "function", (
    f"{_FUNCTIONS}reals_keep_their_bounds", "test_constants.py",
), _tried("all any isfinite isinf isnan isnormal isordered isunordered not select signbit", REALS))

_MATH = Chapter("6.5", "Math functions", "function", (f"{_FUNCTIONS}reals_keep_their_bounds",), _tried(
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh cospi divide exp exp2 exp10 fabs abs fdim floor fma "
    "fmax max fmax3 max3 fmedian3 median3 fmin min fmin3 min3 fmod fract frexp ilogb ldexp log log2 log10 modf "
    "nextafter pow powr rint round rsqrt sin sincos sinh sinpi sqrt tan tanh tanpi trunc", REALS))

_MATH_WORDS = Chapter("6.5", "Namespaces and constants of the math functions", "word", (
    f"{_FUNCTIONS}fast_and_precise_prefixes_select_their_variants", *_CONSTANTS,
), (
    *_each("fast precise"),
    *_constants("F", "MAXFLOAT HUGE_VALF INFINITY NAN", "1.2"), *_constants("H", "MAXHALF HUGE_VALH", "1.2"),
    *_constants("BF", "MAXBFLOAT HUGE_VALBF", "3.1"),
))  # fmt: skip

_MATRIX = Chapter("6.6", "Matrix functions", "function", ("test_matrices.py::test_reads",),
                  _each("determinant transpose"))

_SIMDGROUP_MATRIX = Chapter("6.7", "SIMD-group matrix functions", "function", (
    "test_simdgroup_matrix.py::test_thread_elements_are_laid_out_as_on_apple_gpus",
    "test_simdgroup_matrix.py::test_products",
), _each("make_filled_simdgroup_matrix simdgroup_load simdgroup_store simdgroup_multiply_accumulate simdgroup_multiply",
         "2.3"))

_GEOMETRIC = Chapter("6.8", "Geometric functions", "function", (
    "test_geometric_and_pack.py::test_geometric_functions",
), _each("cross distance distance_squared dot faceforward length length_squared normalize reflect refract"))

_BARRIERS = ("test_atomics.py::test_a_barrier_makes_writes_visible_to_the_group",
             "test_fences.py")  # fmt: skip
_SYNCHRONIZATION = Chapter("6.9.1", "Synchronization functions", "function", _BARRIERS, (
    *_each("threadgroup_barrier"), *_each("simdgroup_barrier", "2.0"),
))
_FLAGS = Chapter("6.9.1", "Memory flags", "word", _BARRIERS, (
    *_each("mem_flags mem_none mem_device mem_threadgroup"), *_each("mem_texture", "1.2", "no effect: no textures"),
    *_each("mem_threadgroup_imageblock", "2.3", "no effect: no imageblocks"),
    *_each("mem_object_data", "3.0", "no effect: no object functions"),
))  # fmt: skip


def _collective(prefix: str) -> tuple[Entry, ...]:
    listed = _each("active_threads_mask all and any ballot broadcast broadcast_first is_first max min or "
                   "prefix_exclusive_product prefix_exclusive_sum prefix_inclusive_product prefix_inclusive_sum "
                   "product shuffle shuffle_and_fill_down shuffle_and_fill_up shuffle_down shuffle_rotate_down "
                   "shuffle_rotate_up shuffle_up shuffle_xor sum xor")  # fmt: skip
    names = [name for entry in listed for name in entry.names]
    first = {"broadcast", "shuffle", "shuffle_down", "shuffle_up", "shuffle_xor"}
    since = {n: "2.4" if "fill" in n else "2.0" if n in first else "2.1" for n in names}
    return tuple(Entry((f"{prefix}_{name}",), since[name]) for name in names)


_SIMD = Chapter("6.9.2", "SIMD-group functions", "function", _GROUPS, _collective("simd"))
_QUAD = Chapter("6.9.3", "Quad-group functions", "function", _GROUPS, _collective("quad"))
_VOTES = Chapter("6.9.2, 6.9.3", "Votes", "word", _GROUPS, _each("simd_vote quad_vote vote_t", "2.1"))

_FORMATS = "unorm4x8 snorm4x8 unorm2x16 snorm2x16 unorm10a2 unorm565"
_PACKING = ("test_geometric_and_pack.py::test_pack_and_unpack", "test_geometric_and_pack.py::test_srgb")
_UNPACK = Chapter("6.14.1", "Unpack functions", "function", _PACKING, _each(
    " ".join(f"unpack_{f}_to_{kind}" for f in [*_FORMATS.split(), "unorm4x8_srgb"] for kind in ("float", "half"))))
_PACK = Chapter("6.14.2", "Pack functions", "function", _PACKING, _each(
    " ".join(f"pack_{kind}_to_{f}" for f in [*_FORMATS.split(), "srgb_unorm4x8"] for kind in ("float", "half"))))

_ATOMIC_TESTS = (
    "test_atomics.py::test_every_modification_happens_once", "test_atomics.py::test_exchange_and_compare",
    "test_atomics.py::test_ulong_minimum_and_maximum", "test_fences.py",
)  # fmt: skip
_ATOMIC = Chapter("6.15", "Atomic functions", "function", _ATOMIC_TESTS, (
    *_each("atomic_store_explicit atomic_load_explicit atomic_exchange_explicit atomic_compare_exchange_weak_explicit"),
    *_each(" ".join(f"atomic_fetch_{op}_explicit" for op in ("add", "and", "max", "min", "or", "sub", "xor"))),
    *_each("atomic_max_explicit atomic_min_explicit", "2.4", "only atomic_ulong"),
    *_each("atomic_thread_fence", "3.2"),
))  # fmt: skip
_ATOMIC_WORDS = Chapter("6.15.1, 6.15.2", "Memory orders and thread scopes", "word", _ATOMIC_TESTS, (
    *_each("memory_order_relaxed"), *_each("memory_order_seq_cst", "3.2"),
    *_each("thread_scope_thread thread_scope_simdgroup thread_scope_threadgroup thread_scope_device", "3.2"),
))

CHAPTERS = (
    _PREPROCESSOR, _PRAGMAS, _SCALARS, _VECTORS, _PACKED, _MATRICES, _SIMDGROUP_MATRICES, _ATOMIC_TYPES, _OTHER_TYPES,
    _SPACES, *_ATTRIBUTES, _FUNCTION_WORDS, _PROGRAM_SCOPE, _COMMON, _INTEGER, _RELATIONAL, _MATH, _MATH_WORDS, _MATRIX,
    _SIMDGROUP_MATRIX, _GEOMETRIC, _SYNCHRONIZATION, _FLAGS, _SIMD, _QUAD, _VOTES, _UNPACK, _PACK, _ATOMIC,
    _ATOMIC_WORDS,
)  # fmt: skip
