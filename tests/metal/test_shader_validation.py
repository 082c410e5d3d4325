"""`%%metal --check` and `validate` on a Mac: Metal's shader validation, where the system supports it."""

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import metal_double
import numpy as np
import pytest
from metal.doubled_engines import HEAD, Calls, metal
from metal_double.device import MTLDevice
from metal_double.pipelines import MTLComputePipelineDescriptor, MTLComputePipelineState
from metal_double.validation_logs import MTLFunctionLog

import metalnb as mnb
from metalnb.engine.metal.bindings import Bindings
from metalnb.engine.metal.fast_enumeration import _State, enumerate_objects
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.magics.call_checks import guard
from metalnb.magics.session import Session

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.skipif(sys.platform != "linux", reason="the double's validation is the validated build, under Linux"),
]

STEPS = """kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = x[i + 1] - x[i];
}"""
SAID = 'Invalid device load executing kernel function "steps"'


@pytest.fixture(autouse=True)
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the display, as IPython shows it."""
    shown: list[Any] = []
    monkeypatch.setattr("metalnb.magics.call_checks.display", shown.append)
    return shown


def arrays(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def checked(source: str, expected: Any = None) -> Any:
    """Return a kernel of a cell with ``--check``."""
    program = metal(source)
    guard(Session(None), program, expected, requested=True, earlier={})
    (kernel,) = program.kernels.values()
    return kernel


def test_a_fault_is_at_the_authors_line_and_the_call_is_not_made(displayed: list[Any]) -> None:
    x, out = arrays()
    with pytest.raises(mnb.KernelFault, match=rf"steps: line 4: {SAID}\. The call was not made\."):
        checked(STEPS)(x, out)
    assert (out == 0).all()
    (seen,) = displayed
    assert (seen.by, seen.ok, seen.accesses) == ("Metal's shader validation", False, 0)
    assert [(f.kind, f.line, f.column, f.source.strip()) for f in seen.findings] == [
        ("reported", 4, 14, "out[i] = x[i + 1] - x[i];")
    ]
    assert str(seen).splitlines()[0] == "steps: 1 fault, 40 threads, by Metal's shader validation"
    assert SAID.replace('"', "&quot;") in seen._repr_html_()


def test_a_right_call_is_noted_and_made(capsys: pytest.CaptureFixture[str], calls: Calls) -> None:
    asked = calls.of(MTLComputePipelineDescriptor, "setShaderValidation_")
    x, out = arrays()
    kernel = checked(STEPS, expected=np.append(np.ones(39, np.float32), 0))
    kernel(x, out, grid=39)
    assert asked == [(metal_double.CONSTANTS["MTLShaderValidationEnabled"],)]
    assert capsys.readouterr().out == "note: steps: no fault by Metal's shader validation, out as expected\n"
    assert (out[:39] == 1).all()
    kernel(x, out, grid=39)
    assert len(asked) == 1


def test_outputs_are_compared_with_a_reference(displayed: list[Any]) -> None:
    kernel = checked("kernel void half_of(device float* x, uint i [[thread_position_in_grid]]) { x[i] /= 2; }",
                     expected=lambda x: x / 4)  # fmt: skip
    x = np.full(40, 8, np.float32)
    kernel(x)
    assert (x == 4).all()
    assert "x[0] is 4, expected 2. 40 of 40 elements are wrong" in str(displayed[0])
    assert "wrote" not in str(displayed[0])


def test_validate_uses_the_device_on_request_and_outside_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = metal(STEPS).steps
    x, out = arrays()
    assert mnb.validate(kernel, x, out).findings[0].kind == "beyond"
    assert mnb.validate(kernel, x, out, device=True).findings[0].kind == "reported"
    monkeypatch.setattr("metalnb.validation.run.sys", SimpleNamespace(platform="darwin"))
    assert mnb.validate(kernel, x, out).findings[0].kind == "reported"
    assert (out == 0).all()


def older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(MTLComputePipelineDescriptor, "setShaderValidation_")


def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLComputePipelineState, "validates", False)


@pytest.mark.parametrize("lack", [older, switched_off])
def test_checked_build_runs_without_validation(
    monkeypatch: pytest.MonkeyPatch, displayed: list[Any], lack: Any
) -> None:
    lack(monkeypatch)
    with pytest.raises(mnb.KernelFault, match=r"line 4: thread 39 reads x\[40\], beyond the end"):
        checked(STEPS)(*arrays())
    assert displayed[0].by == ""


def test_without_either_validation_the_note_names_the_requirements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older(monkeypatch)
    monkeypatch.setattr("metalnb.engine.cpu.validated.validated_run.sys", SimpleNamespace(platform="darwin"))
    x, out = arrays()
    checked(STEPS)(x, out, grid=39)
    said = "steps is not checked: mnb.validate and %%metal --check run under Linux, and with engine 'metal' on macOS 15"
    assert said in capsys.readouterr().out


def test_lines_of_header_cells_and_reports_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"ops.h": "inline float next(device const float* x, uint i) {\n    return x[i + 1];\n}\n"}
    source = '#include "ops.h"\n' + STEPS.replace("x[i + 1]", "next(x, i)")
    kernel = metal(source, headers=headers).steps
    (found,) = mnb.validate(kernel, *arrays(), device=True).findings
    assert (found.line, found.source) == (2, "    return x[i + 1];")
    monkeypatch.setattr(MTLFunctionLog, "located", False)
    (found,) = mnb.validate(kernel, *arrays(), device=True).findings
    assert (found.line, found.operation) == (4, SAID)


def test_a_command_buffers_fault_is_a_finding(engine: MetalEngine) -> None:
    engine._commands._queue.fails.append(3)
    (found,) = mnb.validate(metal(STEPS).steps, *arrays(), grid=39, device=True).findings
    assert "steps: the GPU did not finish it (MTLCommandBufferErrorPageFault)" in found.operation


def test_the_call_is_made_on_copies_and_arrays_that_overlap_do_so_there() -> None:
    source = """kernel void f(device const float* x, device float* y) {
        y[0] = 5; threadgroup_barrier(mem_flags::mem_device); y[1] = x[4]; }"""
    f = metal(source).f
    x = mnb.ones(12, dtype="float32", device="metal")
    expected = {"y": np.array([5, 5, *[1] * 6], np.float32)}
    report = mnb.validate(f, x[:8], x[4:], expected=expected, device=True, grid=1)
    assert (report.ok, report.by) == (True, "Metal's shader validation")
    assert np.asarray(x).tolist() == [1] * 12
    whole = np.ones(8, np.float32)
    report = mnb.validate(f, whole, whole, expected=np.array([5, 1, *[1] * 6], np.float32), device=True, grid=1)
    assert report.ok
    assert (whole == 1).all()


def test_kernels_with_pointers_fall_back_to_the_checked_build() -> None:
    source = """struct Args { device float* x; float a; };
kernel void f(constant Args& args, uint i [[thread_position_in_grid]]) { args.x[i] += args.a; }"""
    x = mnb.zeros(3, dtype="float32", device="metal")
    report = mnb.validate(metal(source).f, {"x": x, "a": 1}, grid=3, device=True)
    assert report.by == ""
    assert np.asarray(x).tolist() == [0] * 3


def test_a_pipeline_that_metal_refuses_with_validation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = metal_double.runtime.NSError("too many registers", 3)
    name = "newComputePipelineStateWithDescriptor_options_reflection_error_"
    kernel = mnb.compile(HEAD + STEPS, engine="metal").steps
    _ = kernel.binary
    monkeypatch.setattr(MTLDevice, name, lambda *_: (None, refused))
    with pytest.raises(mnb.CompileError, match="too many registers"):
        mnb.validate(kernel, *arrays(), device=True)


# ---- Containers that PyObjC does not iterate over --------------------------------------------------------------------


class Container:
    """An object with nothing but fast enumeration."""


@pytest.mark.parametrize("count", [0, 1, 16, 17, 40])
def test_fast_enumeration_yields_each_object_once(count: int) -> None:
    """The objects come in batches: in the caller's buffer, or in the container's memory."""
    addresses = [1000 + i for i in range(count)]
    own = (ctypes.c_void_p * 40)(*addresses)
    container = Container()

    def send(address: int, state: Any, room: Any, most: int) -> int:
        assert (address, most) == (77, 16)
        at = ctypes.cast(state, ctypes.POINTER(_State)).contents
        first = at.state
        part = addresses[first : first + most]
        if first % 32:
            at.items = ctypes.cast(ctypes.byref(own, 8 * first), ctypes.POINTER(ctypes.c_void_p))
        else:
            room[: len(part)] = part
            at.items = ctypes.cast(room, ctypes.POINTER(ctypes.c_void_p))
        at.state = first + len(part)
        return len(part)

    objc = SimpleNamespace(pyobjc_id=lambda _: 77, objc_object=lambda c_void_p: c_void_p)
    assert enumerate_objects(Bindings(None, objc), container, send) == addresses


def test_arrays_and_nil_are_enumerated_unchanged() -> None:
    found = Bindings(None, None)
    assert enumerate_objects(found, None) == []
    assert enumerate_objects(found, [1, 2]) == [1, 2]
