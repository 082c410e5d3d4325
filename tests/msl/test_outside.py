"""What metalnb does not run is refused by its name, with the reason and with what to do instead."""

from __future__ import annotations

import pytest
from msl.cells import program

import metalnb as mnb
from metalnb.msl.attributes import ATTRIBUTES
from metalnb.msl.outside import OUTSIDE

QUALIFIERS = {"threadgroup_imageblock", "ray_data", "object_data", "coherent"}
NAMESPACES = {"raytracing", "mpp"}
GRAPHICS = [a for a in ATTRIBUTES.values() if a.use == "graphics"]


def cells(name: str) -> list[str]:
    """Use a name in the ways that cells do."""
    if name in QUALIFIERS:
        return [f"kernel void k({name} device float* y) {{ }}"]
    if name in NAMESPACES:
        return [f"{{ {name}::thing x; }}"]
    return [f"{{ {name}<float> x; }}", f"{{ {name} x; }}", f"{{ y[i] = {name}(y[i]); }}"]


@pytest.mark.parametrize(("name", "reason", "cure"), [(n, g.reason, g.cure) for g in OUTSIDE for n in g.names])
def test_a_name_is_refused_with_its_reason(name: str, reason: str, cure: str) -> None:
    for text in cells(name):
        with pytest.raises(mnb.CompileError) as caught:
            mnb.compile(program(text))
        assert (caught.value.message, caught.value.hint) == (f"'{name}' is not available: {reason}", cure)


@pytest.mark.parametrize("name", [n for g in OUTSIDE for n in g.names if n not in {"mpp", "raytracing"}])
def test_a_cell_may_define_the_name_itself(name: str) -> None:
    assert mnb.compile(program(f"float {name}(float x) {{ return 2 * x; }}\n{{ y[i] = {name}(y[i]); }}")).kernels


@pytest.mark.parametrize("attribute", GRAPHICS, ids=[a.name for a in GRAPHICS])
def test_attributes_of_other_stages_are_refused_on_parameters_and_functions(attribute: object) -> None:
    text = f"[[{attribute.name}{'(0)' if attribute.argument else ''}]]"
    for cell in (f"kernel void k(device float* y {text}) {{ }}", f"{text} kernel void k(device float* y) {{ }}"):
        with pytest.raises(mnb.CompileError) as caught:
            mnb.compile(program(cell))
        message = caught.value.message
        assert f"attribute '{attribute.name}'" in message or f"is a {attribute.name} function" in message
        assert "metalnb runs compute kernels" in message


def test_words_of_the_pipeline_need_no_declaration() -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program("[[patch(quad, 16)]] kernel void k(device float* y) { }"))
    assert caught.value.message == "'k' has the attribute 'patch': metalnb runs compute kernels"
