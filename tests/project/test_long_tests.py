"""The mark `long`: which cases it exempts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from long_tests import mark_long_tests


class Item(SimpleNamespace):
    """A test case, as pytest collects it."""

    def __init__(self, name: str, mark: pytest.MarkDecorator, **params: Any) -> None:
        marks = [pytest.mark.timeout(5).mark, mark.mark]
        super().__init__(nodeid=name, own_markers=marks, callspec=SimpleNamespace(params=params))

    def add_marker(self, name: str) -> None:
        self.own_markers.append(getattr(pytest.mark, name).mark)


def long_ones(items: list[Any]) -> list[str]:
    mark_long_tests(items)
    assert all([m.name for m in i.own_markers] in (["timeout"], ["timeout", "long"]) for i in items)
    assert not [m for i in items for m in i.own_markers if m.name == "long" and m.kwargs]
    return [i.nodeid for i in items if i.own_markers[-1].name == "long"]


def test_long_mark_without_arguments_covers_every_case() -> None:
    assert long_ones([Item("a", pytest.mark.long)]) == ["a"]


def test_every_nth_case_is_counted_per_test() -> None:
    mark = pytest.mark.long(every=3)
    items = [Item(f"{test}[{n}]", mark) for n in range(5) for test in "ab"]
    assert long_ones(items) == ["a[1]", "b[1]", "a[2]", "b[2]", "a[4]", "b[4]"]


def test_a_condition_names_the_parameters_that_it_asks_about() -> None:
    mark = pytest.mark.long(unless=lambda n, kind: n == 1 or kind == "x")
    items = [Item(f"a[{n}-{kind}]", mark, kind=kind, n=n, other=0) for n in (1, 2) for kind in "xy"]
    assert long_ones(items) == ["a[2-y]"]


def test_condition_on_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match="dtyp"):
        long_ones([Item("a[1]", pytest.mark.long(unless=lambda dtyp: dtyp), dtype=1)])
