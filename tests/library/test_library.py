"""Every op of the table, for every dtype and every layout, compared with its row's reference."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import pytest
from accuracy import walked, worst
from oracle import error, expected, held, laid, layouts

import metalnb as mnb
from metalnb.arrays.promotion import as_dtype
from metalnb.library_kernels import op_table
from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.elementwise.elementwise_text import LOOPS
from metalnb.library_kernels.op import Op
from metalnb.library_kernels.samples.samples_by_op import samples_of
from metalnb.program.recipe import Recipe

CASES = [(name, dtype) for name, op in op_table.ops().items() if samples_of(op) for dtype in op.row.dtypes]
WIDTHS = "bool", "bfloat16", "float32", "int64"  # One dtype of each width: code for strides depends only on the width
STRIDED = [(name, dtype) for name, dtype in CASES if dtype in WIDTHS]


KINDS = {dtype: kind for kind, dtypes in LOOPS.items() for dtype in dtypes}


def in_short() -> Iterator[tuple[str, str]]:
    """Yield each op with a dtype for each of its expressions, and each dtype with an op of each family.

    That dtype is float32 if the expression supports it, else the one used least in its family so far. Only combinations
    of a dtype and one op are lost: an expression has one source for all its dtypes, and what a dtype needs (a type, a
    conversion, an overload) is shared by its family. The other files here test dtypes, too.
    """
    met: Counter[tuple[str, str]] = Counter()
    for name, op in op_table.ops().items():
        for dtypes in by_expression(op):
            new = [d for d in dtypes if d != "float32" and not met[op.row.family, d]][:1]
            least = min(dtypes, key=lambda d: (d != "float32", met[op.row.family, d]))
            for dtype in sorted({*new, least}):
                met[op.row.family, dtype] += 1
                yield name, dtype


def by_expression(op: Op) -> Collection[list[str]]:
    """Return the dtypes that share each of an op's expressions; a dtype without one counts as a float."""
    groups = op.formula.groups if isinstance(op, Elementwise) else [""]
    found: defaultdict[str, list[str]] = defaultdict(list)
    for dtype in op.row.dtypes if samples_of(op) else ():
        found[next((g for g in groups if KINDS[dtype] in g), "f")].append(dtype)
    return found.values()


def strided_in_short() -> Iterator[tuple[str, str]]:
    """Yield some ops of each family with each width: code for strides depends on the family and the width."""
    families = {op.row.family for op in op_table.ops().values()}
    for family, (number, dtype) in itertools.product(sorted(families), enumerate(WIDTHS)):
        own = [(name, d) for name, d in STRIDED if d == dtype and op_table.op(name).row.family == family]
        yield from own[min(7 * number, len(own) - 1) :: 28] if own else ()


SHORT = {*in_short()}
STRIDED_IN_SHORT = {*strided_in_short()}
TURNS = 8
# In `make test` each op takes every few of its other samples, and the next op of the table starts at the next one. They
# differ in shapes and axes, which select kernels and forms, and those are common to a family.
ALWAYS = 2  # The first samples: for elementwise ops the edge cases, and random bits
TURN = {name: number % TURNS for number, name in enumerate(op_table.ops())}


def in_turn(name: str, number: int) -> bool:
    """Return whether `make test` takes an op's sample with this number."""
    return number < ALWAYS or number % TURNS == TURN[name]


@pytest.fixture(autouse=True)
def whole_texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `make test-long` read the library's sources as a user's cell, with every instantiation of their templates."""
    if request.node.get_closest_marker("long"):
        monkeypatch.setattr(Recipe, "of_library", lambda recipe, _own=True: recipe)


@pytest.mark.long(unless=lambda name, dtype: (name, dtype) in SHORT)
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=[f"{n}-{d}" for n, d in CASES])
def test_an_op_agrees_with_its_reference(name: str, dtype: str, rng: np.random.Generator) -> None:
    some = (name, dtype) in SHORT
    agrees(op_table.op(name), dtype, rng, plain, lambda number: not some or in_turn(name, number))


@pytest.mark.long  # The samples that the test above does not cover
@pytest.mark.parametrize(("name", "dtype"), sorted(SHORT), ids=lambda given: given)
def test_an_op_agrees_on_its_other_samples(name: str, dtype: str, rng: np.random.Generator) -> None:
    agrees(op_table.op(name), dtype, rng, plain, lambda number: not in_turn(name, number))


@pytest.mark.long(unless=lambda name, dtype: (name, dtype) in STRIDED_IN_SHORT)
@pytest.mark.parametrize(("name", "dtype"), STRIDED, ids=[f"{n}-{d}" for n, d in STRIDED])
def test_an_op_takes_views(name: str, dtype: str, rng: np.random.Generator) -> None:
    some = (name, dtype) in STRIDED_IN_SHORT
    agrees(op_table.op(name), dtype, rng, viewed, lambda number: not some or in_turn(name, number))


@pytest.mark.long  # The samples that the test above does not cover
@pytest.mark.parametrize(("name", "dtype"), sorted(STRIDED_IN_SHORT), ids=lambda given: given)
def test_an_op_takes_views_of_its_other_samples(name: str, dtype: str, rng: np.random.Generator) -> None:
    agrees(op_table.op(name), dtype, rng, viewed, lambda number: not in_turn(name, number))


def plain(_: Any) -> list[str]:
    return ["plain"]


def viewed(args: Any) -> list[str]:
    return [*layouts(args)][1:]


def agrees(
    op: Op, dtype: str, rng: np.random.Generator, laid_out: Callable[[Any], list[str]], taken: Callable[[int], bool],
) -> None:  # fmt: skip
    """Check an op's results for the samples taken, in the layouts chosen for their arguments."""
    samples = samples_of(op)
    assert samples is not None
    for number, sample in enumerate(samples(rng, dtype)):
        if not taken(number):
            continue
        want: Any = None
        for layout in laid_out(sample.args):
            arguments = [laid(a, layout) if isinstance(a, np.ndarray) else a for a in sample.args]
            named = {k: laid(v, layout) if isinstance(v, np.ndarray) else v for k, v in sample.options.items()}
            got = op(*arguments, **named)
            several = got if isinstance(got, (tuple, list)) else (got,)
            if want is None:
                want, wide = expected(op, sample.args, sample.options, several[0].dtype)
            for one, right in zip(several, want if isinstance(got, (tuple, list)) else (want,), strict=True):
                held(op, one, right, wide, f" (sample {number} of {dtype}, {layout}, {sample.options})")


def test_every_op_has_documentation_samples_and_known_dtypes() -> None:
    for name, op in op_table.ops().items():
        assert op.doc.endswith("."), name
        assert samples_of(op) or op.row.family == "creation", f"{name} has no samples"
        assert set(op.row.dtypes) <= {"bool", *(d for loop in LOOPS.values() for d in loop)}, name


def test_wrong_result_is_detected() -> None:
    """The comparison itself rejects an error above the tolerance, NaN, an infinity, a wrong shape, a wrong integer."""
    op = Op(lambda x: x, op_table.op("exp").row)
    one = np.ones(3)
    for wrong in (1 + 2e-6, np.nan, np.inf, -np.inf):
        got = mnb.asarray(np.array([1, wrong, 1], np.float32))
        with pytest.raises(AssertionError, match="1 of 3 are wrong"):
            held(op, got, one, (one,))
    with pytest.raises(AssertionError, match="shape"):
        held(op, mnb.asarray(np.ones(2, np.float32)), one, (one,))
    with pytest.raises(AssertionError, match="1 of 3 are wrong"):
        held(op, mnb.asarray(np.array([1, 1, 2])), one, (one,))
    held(op, mnb.asarray(np.array([1, np.nan, np.inf], np.float32)), np.array([1, np.nan, 1e39]), (one,))


def test_errors_are_in_units_of_the_dtype() -> None:
    for dtype, eps in {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}.items():
        kind = as_dtype(dtype)
        exact = np.array([1, 1 + eps / 2, 1 - eps / 2, 0.0])
        assert error(np.array([1, 1, 1, 0], kind), exact).tolist() == [0, 0.5, 1, 0]
        assert error(np.array([1], kind), np.array([1 + eps]), np.array([4.0])).tolist() == [0.25]


@pytest.mark.long  # Tests the tool that `make accuracy` runs
def test_a_walk_through_the_floats_finds_the_largest_error() -> None:
    assert {"exp", "erf", "gelu", "relu"} <= set(walked())
    assert not {"add", "isnan", "clip", "sum"} & set(walked())
    most, where = worst("gelu", 1 << 14, 99)
    assert 3 < most <= 8
    assert -15 < where < 0
