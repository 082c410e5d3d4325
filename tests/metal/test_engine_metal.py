"""The engine `metal` on a strict double of PyObjC's module: its calls, and how it handles the results."""

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import metal_double
import numpy as np
import pytest
from metal.doubled_engines import ADD, Calls, doubled, metal
from metal_double import CONSTANTS, MetalAbortError
from metal_double.commands import MTLCommandBuffer
from metal_double.pipelines import MTLComputePipelineState
from opened_engines import open_as, open_only

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.engine import metal as metal_package
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.magics.line_magic import COMMANDS
from metalnb.magics.session import Session

pytestmark = pytest.mark.usefixtures("engine")


def test_elapsed_time_is_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count(1)
    add = metal(ADD).add
    x = mnb.ones(5, dtype="float32", device="metal")
    assert np.asarray(x)[0] == 1
    clock = SimpleNamespace(perf_counter=lambda: float(next(times)))
    monkeypatch.setattr(metal_double.commands, "time", clock)
    ticket = add.prepare(x, x, 1).launch()
    ticket.wait()
    assert ticket.elapsed() == 1.0


def test_more_runs_are_timed_than_one_batch_holds(engine: MetalEngine) -> None:
    add = metal(ADD).add
    x = mnb.zeros(5, dtype="float32", device="metal")
    bound = add.prepare(x, x, 1)
    seconds = engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 70)
    assert len(seconds) == 70
    assert min(seconds) > 0
    assert np.asarray(x)[0] == 70


@pytest.mark.parametrize(("word", "kind", "said"), [
    ("PageFault", "", "it accessed memory outside its arguments"),
    ("Timeout", "stopped", "it ran longer than the system lets a GPU work"),
    ("OutOfMemory", "", "the GPU has no memory left"),
])  # fmt: skip
def test_a_command_buffer_that_fails_is_a_fault(engine: MetalEngine, word: str, kind: str, said: str) -> None:
    queue = engine._commands._queue
    queue.fails.append(CONSTANTS[f"MTLCommandBufferError{word}"])
    add = metal(ADD).add
    x = np.zeros(5, np.float32)
    ticket = add.prepare(x, x, 1).launch()
    for _ in range(2):
        with pytest.raises(mnb.KernelFault) as caught:
            ticket.wait()
    message = str(caught.value)
    assert message.startswith(f"add: the GPU did not finish it (MTLCommandBufferError{word}): {said}")
    assert message.endswith("(encoder 'add' faulted.) Metal: Caused GPU Address Fault Error (0000000b)")
    assert caught.value.kind == kind
    assert np.isnan(ticket.elapsed())
    assert (x == 0).all()
    add(x, x, 1)
    assert (x == 1).all()


def test_unknown_error_is_reported_by_number(engine: MetalEngine) -> None:
    engine._commands._queue.fails.append(77)
    x = np.zeros(5, np.float32)
    with pytest.raises(mnb.KernelFault, match=r"\(MTLCommandBufferError 77\): Metal does not say why"):
        metal(ADD).add(x, x, 1)


def test_a_fault_is_raised_where_a_dependent_result_is_read(engine: MetalEngine) -> None:
    x, y = (mnb.ones(5, dtype="float32", device="metal") for _ in range(2))
    (x + y).read()
    engine._commands._queue.fails.append(3)
    metal(ADD).add(x, y, 1)
    z = y * 2
    with pytest.raises(mnb.KernelFault, match="PageFault"):
        z.read()
    assert (x + x).tolist() == [2] * 5


def test_fault_in_a_timed_run_is_raised_when_all_have_ended(engine: MetalEngine, calls: Calls) -> None:
    waits = calls.of(MTLCommandBuffer, "waitUntilCompleted")
    bound = metal(ADD).add.prepare(np.zeros(5, np.float32), np.zeros(5, np.float32), 1)
    engine._commands._queue.fails.append(3)
    with pytest.raises(mnb.KernelFault, match="PageFault"):
        engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 3)
    assert len(waits) == 3


def test_a_recording_has_the_dispatches_of_its_block(tmp_path: Path) -> None:
    add = metal(ADD).add
    x = mnb.ones(5, dtype="float32", device="metal")
    add(x, x, 1)
    with mnb.capture(tmp_path / "f.gputrace", engine="metal") as path:
        add(x, x, 1)
        add(x, x, 1)
    add(x, x, 1)
    assert path.read_text("utf-8").split() == ["add", "add"]
    with pytest.raises(mnb.ArgumentError, match=r"capture: '.*f\.gputrace' exists"), mnb.capture(path, engine="metal"):
        pass


def test_a_recording_ends_where_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), mnb.capture(tmp_path / "f.gputrace", engine="metal"):
        _ = 1 / 0
    with mnb.capture(tmp_path / "g.gputrace", engine="metal"):
        pass


def test_failed_recordings_state_their_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "f.gputrace"
    with pytest.raises(mnb.ArgumentError, match="engine 'cpu' cannot record"), mnb.capture(engine="cpu"):
        pass
    wrong = pytest.raises(mnb.ArgumentError, match=r"ends in \.gputrace; got 'f\.txt'")
    with wrong, mnb.capture("f.txt", engine="metal"):
        pass
    with (
        mnb.capture(where, engine="metal"),
        pytest.raises(mnb.EngineUnavailable, match="Capture is already in progress"),
        mnb.capture(tmp_path / "g.gputrace", engine="metal"),
    ):
        pass
    monkeypatch.setattr(metal_double.MTLCaptureManager, "enabled", False)
    unset = pytest.raises(mnb.EngineUnavailable, match="set MTL_CAPTURE_ENABLED=1 in the environment before")
    with unset, mnb.capture(tmp_path / "h.gputrace", engine="metal"):
        pass


def test_the_magic_records_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "_chosen", ["metal"])
    session = Session(None)
    run = COMMANDS["capture"].run
    assert run(session, None) == "recording to metalnb.gputrace, until %metal capture end"
    metal(ADD).add(np.zeros(3, np.float32), np.zeros(3, np.float32), 1)
    assert "Xcode" in run(session, "end")
    assert Path("metalnb.gputrace").read_text("utf-8") == "add"


def test_the_card_shows_the_thread_limit_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLComputePipelineState, "most", 448)
    kernel = metal(ADD + "// on a card").add
    assert kernel.card.facts == []
    _ = kernel.binary
    assert kernel.card.facts == [("threads in a threadgroup", "at most 448"), ("threads of a SIMD-group", "32")]


def test_capabilities_are_those_of_the_device(engine: MetalEngine) -> None:
    caps = engine.caps
    assert (caps.device, caps.clock, caps.msl) == ("Apple M0 (double)", "device", (3, 2))
    assert caps.precise
    assert caps.offsets
    assert caps.versions == {"PyObjC": "12.2 (double)", "MSL": "3.2"}


def test_devices_are_opened_by_index() -> None:
    second = metal_package.open_engine(1, module=metal_double)
    assert (second.name, second.caps.device) == ("metal:1", "Apple M0 (its second double)")
    with pytest.raises(mnb.EngineUnavailable, match="engine 'metal' has no device 2: this machine has 2 devices"):
        metal_package.open_engine(2, module=metal_double)


def test_missing_metal_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METALNB_METAL", raising=False)
    for system in ("Linux", "Darwin"):  # where PyObjC is not installed
        monkeypatch.setattr("platform.system", lambda system=system: system)
        monkeypatch.setitem(sys.modules, "Metal", None)
        with pytest.raises(mnb.EngineUnavailable) as caught:
            metal_package.open_engine()
        assert str(caught.value) == "engine 'metal' needs macOS 13 and PyObjC: pip install pyobjc-framework-Metal"
    monkeypatch.setattr(metal_double, "MTLCreateSystemDefaultDevice", lambda: None)
    with pytest.raises(mnb.EngineUnavailable, match="engine 'metal' found no Metal device"):
        metal_package.open_engine(module=metal_double)


def test_without_pyobjc_metalcompute_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    open_as(monkeypatch, doubled())
    open_only(monkeypatch, "metal:metalcompute")
    assert engines.current() is doubled()["metal:metalcompute"]


def test_double_is_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_METAL", "metal_double")
    assert metal_package.open_engine().caps.device == "Apple M0 (double)"


def test_a_kernel_is_pickled_with_its_engine() -> None:
    again = pickle.loads(pickle.dumps(metal(ADD).add))  # noqa: S301  (our own bytes)
    assert again.engine.name == "metal"


OPS = ("exp-float32", "floor_divide-int32", "sum-float32", "cumulative_sum-int64", "sort-float32", "matmul-float32")


@pytest.mark.timeout(1800)  # two minutes on two idle cores
@pytest.mark.long(unless=lambda tests: len(tests) == len(OPS))  # The tests above launch cells; these run ops
@pytest.mark.parametrize("tests", [
    ("msl/test_groups.py", "msl/test_constants.py", "msl/test_threadgroup_arguments.py"),
    tuple(f"library/test_library.py::test_an_op_agrees_with_its_reference[{op}]" for op in OPS),
], ids=["msl", "ops"])  # fmt: skip
def test_a_sample_of_others_tests_passes(tests: tuple[str, ...]) -> None:
    """To run all of them: ``METALNB_ENGINE=metal METALNB_METAL=metal_double pytest tests/msl tests/library``."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    environment = {**os.environ, "METALNB_ENGINE": "metal", "METALNB_METAL": "metal_double"}
    folder = Path(__file__).parents[1]
    done = subprocess.run(
        [*command, *(f"{folder}/{test}" for test in tests)], capture_output=True, text=True, env=environment,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture
def encoder(engine: MetalEngine) -> Any:
    with engine._bindings.pool():
        command = engine._commands._queue.commandBufferWithDescriptor_(metal_double.MTLCommandBufferDescriptor())
    encoder = command.computeCommandEncoder()
    encoder.command = command
    return encoder


SIZE = metal_double.MTLSize(1, 1, 1)


@pytest.mark.parametrize(("error", "misuse"), [
    (AttributeError, lambda e: e.setByte_length_atIndex_(b"", 0, 0)),
    (TypeError, lambda e: e.setBytes_length_atIndex_(b"1234", 4)),
    (ValueError, lambda e: e.setBytes_length_atIndex_("1234", 4, 0)),
    (ValueError, lambda e: e.setBytes_length_atIndex_(b"1234", np.int64(4), 0)),
    (ValueError, lambda e: e.setBuffer_offset_atIndex_(None, 0, 0)),
    (ValueError, lambda e: e.setThreadgroupMemoryLength_atIndex_(-16, 0)),
    (ValueError, lambda e: e.dispatchThreads_threadsPerThreadgroup_((1, 1, 1), SIZE)),
    (MetalAbortError, lambda e: e.dispatchThreads_threadsPerThreadgroup_(SIZE, SIZE)),
    (MetalAbortError, lambda e: e.setBytes_length_atIndex_(bytes(4097), 4097, 0)),
    (MetalAbortError, lambda e: e.setBytes_length_atIndex_(bytes(4), 4, 31)),
    (MetalAbortError, lambda e: e.setThreadgroupMemoryLength_atIndex_(8, 0)),
    (MetalAbortError, lambda e: e.command.commit()),
    (MetalAbortError, lambda e: e.command.waitUntilCompleted()),
    (MetalAbortError, lambda e: e.command.computeCommandEncoder()),
    (MetalAbortError, lambda e: (e.endEncoding(), e.endEncoding())),
])  # fmt: skip
def test_the_double_refuses_misuse(encoder: Any, error: type, misuse: Any) -> None:
    with pytest.raises(error):
        misuse(encoder)


def test_the_double_misses_a_buffer_that_is_not_bound(encoder: Any) -> None:
    encoder.setComputePipelineState_(metal(ADD).add.binary.pipeline.state)
    with pytest.raises(MetalAbortError, match="missing buffer binding at index 0 for x"):
        encoder.dispatchThreads_threadsPerThreadgroup_(SIZE, SIZE)


def test_the_double_requires_a_pool_and_a_place_for_the_error(engine: MetalEngine) -> None:
    with pytest.raises(MetalAbortError, match="autorelease pool"):
        engine._commands._queue.commandBufferWithDescriptor_(metal_double.MTLCommandBufferDescriptor())
    with pytest.raises(TypeError, match="Need 3 arguments, got 2"):
        engine._device.newLibraryWithSource_options_error_("", None)
    with pytest.raises(ValueError, match="depythonifying argument 2"):
        engine._device.newLibraryWithSource_options_error_("", None, "error")
