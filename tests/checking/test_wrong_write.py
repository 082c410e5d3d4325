"""`mnb.trace(until=)`: from a wrong element to the thread and the statement that wrote it."""

from typing import Any

import numpy as np
import pytest
from checking.traced_build import TRACED

import metalnb as mnb
from metalnb.errors import ArgumentError

pytestmark = TRACED

# It clamps one column too early: the last two columns are wrong.
BLUR = """#include <metal_stdlib>
using namespace metal;
kernel void blur(device const float* x, device float* out, uint2 i [[thread_position_in_grid]],
                 uint2 n [[threads_per_grid]]) {
    float sum = 0;
    for (int k = -1; k < 2; ++k) {
        uint column = uint(clamp(int(i.x) + k, 0, int(n.x) - 2));
        sum += x[i.y * n.x + column];
    }
    out[i.y * n.x + i.x] = 0;
    out[i.y * n.x + i.x] = sum / 3;
}"""
LINE = BLUR.split("\n").index("    out[i.y * n.x + i.x] = sum / 3;") + 1


def blurred(x: Any) -> Any:
    wide = np.pad(x, ((0, 0), (1, 1)), mode="edge")
    return (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) / 3


@pytest.fixture(scope="module")
def blur() -> Any:
    return mnb.compile(BLUR).blur


@pytest.fixture(scope="module")
def copy() -> Any:
    return mnb.compile("""
    kernel void copy(device const float* x, device float* out, uint2 i [[thread_position_in_grid]],
                     uint2 n [[threads_per_grid]]) { out[i.y * n.x + i.x] = x[i.y * n.x + i.x]; }""").copy


@pytest.fixture(scope="module")
def image() -> Any:
    return np.random.default_rng(1).random((12, 40), dtype=np.float32)


def opens_at(seen: Any) -> tuple[tuple[int, int], int, Any]:
    """Return the thread and the line at which a trace opens, and the element's value after the statement."""
    within = np.unravel_index(seen.thread, seen.size[::-1])[::-1]
    at = [g * t + n for g, t, n in zip(seen.group, seen.threadgroup, within, strict=True)]
    (step,) = [s for s in seen.threads[seen.thread] if s.tick == seen.aim.tick]
    (touch,) = [t for t in step.touched if t.written and t.memory == seen.aim.memory and t.covers(seen.aim.element)]
    return (int(at[0]), int(at[1])), step.line, touch.values[seen.aim.element - touch.first]


@pytest.mark.parametrize("how", ["report", "difference", "element", "element as the kernel counts"])
def test_trace_opens_at_the_write_of_the_first_wrong_element(
    blur: Any, image: Any, how: str
) -> None:
    call = {"threadgroup": (16, 4)}
    report = mnb.validate(blur, image, np.zeros_like(image), expected=blurred, **call)
    assert report.differences[0].index == (0, 38)
    until = {
        "report": report, "difference": report.differences[0], "element": "out[0, 38]",
        "element as the kernel counts": "out[38]",
    }[how]  # fmt: skip
    stepper = mnb.trace(blur, image, np.zeros_like(image), until=until, **call)
    thread, line, value = opens_at(stepper)
    assert (stepper.group, stepper.size) == ((2, 0, 0), (8, 4, 1)), "the last threadgroup of a row is narrower"
    assert (thread, line) == ((38, 0), LINE), "the last of its two writes"
    assert value == report.differences[0].got
    label = "out[38]" if "counts" in how else "out[0, 38]"
    expected = f"; expected {report.differences[0].expected:.6f}" if how in {"report", "difference"} else ""
    assert stepper.aim.text == f"Thread 38, 0 writes {value:.6f} to {label} on line {LINE}{expected}."
    for shown in (str(stepper), stepper._repr_html_()):
        assert stepper.aim.text in shown
    assert "◀ here" in str(stepper)


def test_an_output_that_the_call_makes_has_elements_too(blur: Any, image: Any) -> None:
    stepper = mnb.trace(blur, image, until="out[7, 39]", threadgroup=(16, 4))
    assert opens_at(stepper)[:2] == ((39, 7), LINE)
    assert stepper.group == (2, 1, 0)


def test_until_finds_the_element_of_vectors_and_halves() -> None:
    kernel = mnb.compile("""#include <metal_stdlib>
    using namespace metal;
    kernel void tint(device float4* out, device half* small, uint i [[thread_position_in_grid]]) {
        out[9 - i].zw = float2(i);
        small[i] = half(i);
    }""").tint
    arguments = np.zeros((2, 5, 4), np.float32), np.zeros(10, np.float16)
    stepper = mnb.trace(kernel, *arguments, until="out[1, 1, 2]", grid=10, threadgroup=4)
    assert (stepper.aim.element, stepper.group[0] * 4 + stepper.thread) == (6, 3)
    stepper = mnb.trace(kernel, *arguments, until="small[9]", grid=10, threadgroup=4)
    assert opens_at(stepper) == ((9, 0), 5, 9)


def test_a_write_beyond_the_steps_that_are_printed_is_printed() -> None:
    kernel = mnb.compile("""
    kernel void late(device float* out, uint i [[thread_position_in_grid]]) {
        float sum = 0;
        for (uint k = 0; k < 100; ++k)
            sum += k;
        out[i] = sum;
    }""").late
    text = str(mnb.trace(kernel, np.zeros(4, np.float32), until="out[2]", threadgroup=4))
    assert "out[2] → 4950" in text
    assert "… after " in text
    assert "◀ here" in text


def test_write_that_depends_on_other_threadgroups_opens_at_its_line() -> None:
    kernel = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void last(device atomic_uint* count, device float* out, uint i [[thread_position_in_grid]]) {
        uint n = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
        if (n == 7)
            out[0] = i;
    }""").last
    stepper = mnb.trace(kernel, np.zeros(1, np.uint32), np.zeros(4, np.float32), until="out[0]", grid=8, threadgroup=4)
    assert "did not write out[0] here, where no other threadgroup runs" in str(stepper)


@pytest.mark.parametrize(("until", "message"), [
    (3, "got 3"), ("out", "got 'out'"), ("out[]", "got"), ("x[1]", "must name an element of out; got 'x'"),
    ("y[1]", "got 'y'"), ("out[12, 0]", r"out has shape \(12, 40\)"), ("out[480]", "out of bounds"),
    ("out[0, 1, 0]", "out of bounds"),
])  # fmt: skip
def test_until_must_name_an_element_of_an_output(blur: Any, image: Any, until: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mnb.trace(blur, image, np.zeros_like(image), until=until)


def test_unwritten_and_correct_elements_are_refused(blur: Any, copy: Any, image: Any) -> None:
    out = np.zeros_like(image)
    with pytest.raises(ArgumentError, match=r"names out\[11, 0\], which no thread wrote"):
        mnb.trace(blur, image, out, until="out[11, 0]", grid=(40, 4))
    with pytest.raises(ArgumentError, match="the outputs were not compared; pass expected="):
        mnb.trace(blur, image, out, until=mnb.validate(blur, image, out))
    with pytest.raises(ArgumentError, match="has no wrong element to trace: the outputs are as expected"):
        mnb.trace(copy, image, out, until=mnb.validate(copy, image, out, expected=lambda x: x))
    with pytest.raises(ArgumentError, match="got both"):
        mnb.trace(blur, image, out, until="out[0]", thread=3)
    short = mnb.compile("""
    kernel void short_of(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                         uint n [[threads_per_grid]]) { out[i] = n < 512 ? 0 : x[i]; }""").short_of
    x = np.ones(512, np.float32)
    report = mnb.validate(short, x, np.zeros_like(x), expected=lambda x: x)
    assert report.differences[0].case
    with pytest.raises(ArgumentError, match="was found in a smaller call, of grid 511; trace that call"):
        mnb.trace(short, x, np.zeros_like(x), until=report)


def test_only_the_card_of_a_failed_check_has_a_button_that_steps_there(blur: Any, copy: Any, image: Any) -> None:
    report = mnb.validate(blur, image, np.zeros_like(image), expected=blurred)
    assert "<button" in report._repr_html_()
    assert "mnb.trace({given}, until=&#x27;out[0, 38]&#x27;)" in report._repr_html_()
    passed = mnb.validate(copy, image, np.zeros_like(image), expected=lambda x: x)
    assert passed.ok
    assert "<button" not in passed._repr_html_()
    assert "mnb.trace" not in passed._repr_html_()
