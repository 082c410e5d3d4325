"""Another process does not compile again: pipelines are kept in binary archives."""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import metal_double
import numpy as np
import pytest
from metal.doubled_engines import ADD, HEAD, metal
from metal_double.device import MTLDevice
from metal_double.pipelines import MTLBinaryArchive, MTLBinaryArchiveDescriptor, MTLComputePipelineState

from metalnb import cache
from metalnb.engine import metal as metal_package
from metalnb.engine.metal import pipeline_archives
from metalnb.engine.unit import Unit

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(MTLComputePipelineState, "compilations", made)
    return made


def fresh(source: str = ADD, **options: Any) -> Unit:
    """Return a kernel that was never compiled before."""
    (kernel,) = metal(f"{source} // {time.time_ns()}", **options).kernels.values()
    return kernel.unit


def refused(*_: Any) -> tuple[None, Any]:
    return None, metal_double.runtime.NSError("not on this device", 4)


def runs(engine: Any, unit: Unit) -> bool:
    y = np.zeros(4, np.float32)
    engine.launch(engine.compile(unit), [np.ones(4, np.float32), y, b"\0\0\x80\x3f"], (4, 1, 1), (4, 1, 1)).wait()
    return bool((y == 2).all())


def test_the_second_engine_uses_the_firsts_archives(compilations: list[str]) -> None:
    unit = fresh()
    assert runs(metal_package.open_engine(module=metal_double), unit)
    assert compilations == ["add"]
    assert runs(metal_package.open_engine(module=metal_double), unit)
    assert compilations == ["add"]


def test_another_process_does_not_compile_again(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        f"""import numpy as np, metalnb as mnb
from metal_double.pipelines import MTLComputePipelineState
y = np.zeros(4, np.float32)
mnb.compile({HEAD + ADD + f"// {time.time_ns()}"!r}, engine="metal").add(np.ones(4, np.float32), y, 1)
print(y.tolist(), MTLComputePipelineState.compilations)
""",
        "utf-8",
    )
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "METALNB_METAL": "metal_double", "PYTHONPATH": paths}
    said = [subprocess.check_output([sys.executable, script], env=environment, text=True) for _ in range(2)]
    assert said == ["[2.0, 2.0, 2.0, 2.0] ['add']\n", "[2.0, 2.0, 2.0, 2.0] []\n"]


def test_changed_unit_is_compiled_again(compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = "constant int N [[function_constant(0)]];\n"
    source += "kernel void f(device int* x, uint i [[thread_position_in_grid]]) { x[i] = N; }"
    stamp = f"// {time.time_ns()}"
    program = metal(source + stamp, constants={"N": 1})
    precise = metal(source + stamp, constants={"N": 1}, math="precise").f.unit
    older = dataclasses.replace(program.f.unit, version=(3, 1))
    for unit in (program.f.unit, program.specialize(N=2).f.unit, precise, older) * 2:
        metal_package.open_engine(module=metal_double).compile(unit)
    assert compilations == ["f"] * 4
    monkeypatch.setattr(MTLDevice, "name", lambda _: "Apple M00 (another double)")
    metal_package.open_engine(module=metal_double).compile(program.f.unit)
    assert compilations == ["f"] * 5


def test_an_archive_that_metal_does_not_take_is_made_again(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = fresh()
    kept: list[tuple[str, bytes]] = []
    real = cache.Store.put

    def put(store: cache.Store, key: str, kind: str, body: bytes) -> None:
        if kind == "metal":
            kept.append((key, body))
            body = b"of an older system" if len(kept) == 1 else body
        real(store, key, kind, body)

    monkeypatch.setattr(cache.Store, "put", put)
    for _ in range(3):
        assert runs(metal_package.open_engine(module=metal_double), unit)
    assert compilations == ["add"] * 2
    assert kept[0] == kept[1]


@pytest.mark.parametrize(("owner", "selector"), [
    (MTLDevice, "newBinaryArchiveWithDescriptor_error_"),
    (MTLBinaryArchive, "addComputePipelineFunctionsWithDescriptor_error_"),
    (MTLBinaryArchive, "serializeToURL_error_"),
    (MTLDevice, "newComputePipelineStateWithDescriptor_options_reflection_error_"),
])  # fmt: skip
def test_without_archives_in_metal_each_engine_compiles(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch, owner: type, selector: str
) -> None:
    monkeypatch.setattr(owner, selector, refused)
    unit = fresh()
    for _ in range(2):
        assert runs(metal_package.open_engine(module=metal_double), unit)
    assert len(compilations) >= 2


def test_an_engine_compiles_when_the_cache_cannot_be_written(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scratch() -> Any:
        raise OSError("full")

    unit = fresh()
    full = SimpleNamespace(get=lambda *_: None, scratch=scratch)
    monkeypatch.setattr(pipeline_archives, "cache", SimpleNamespace(digest=cache.digest, store=lambda: full))
    assert runs(metal_package.open_engine(module=metal_double), unit)
    assert compilations == ["add"]


def test_a_kernel_that_logs_is_not_archived(compilations: list[str]) -> None:
    source = '#include <metal_logging>\nkernel void f(device float* x) { os_log_default.log("x"); x[0] = 1; }'
    unit = fresh(source)
    for _ in range(2):
        metal_package.open_engine(module=metal_double).compile(unit)
    assert compilations == ["f"] * 2


# ---- The double is strict --------------------------------------------------------------------------------------------


def test_the_double_refuses_misuse_of_archives(tmp_path: Path) -> None:
    device = MTLDevice("")
    described = MTLBinaryArchiveDescriptor.alloc().init()
    archive, error = device.newBinaryArchiveWithDescriptor_error_(described, None)
    assert error is None
    url = metal_double.NSURL.fileURLWithPath_(str(tmp_path / "f"))
    with pytest.raises(metal_double.MetalAbortError, match="an archive of nothing"):
        archive.serializeToURL_error_(url, None)
    pipeline = metal_double.MTLComputePipelineDescriptor.alloc().init()
    with pytest.raises(metal_double.MetalAbortError, match="of no function"):
        archive.addComputePipelineFunctionsWithDescriptor_error_(pipeline, None)
    with pytest.raises(metal_double.MetalAbortError, match="not an archive"):
        pipeline.setBinaryArchives_([url])
    with pytest.raises(ValueError, match="depythonifying argument 0"):
        device.newBinaryArchiveWithDescriptor_error_(None, None)
    described.setUrl_(url)
    assert device.newBinaryArchiveWithDescriptor_error_(described, None)[0] is None  # there is no such file
    with pytest.raises(TypeError, match="Need 4 arguments, got 3"):
        device.newComputePipelineStateWithDescriptor_options_reflection_error_(pipeline, 0, None)
