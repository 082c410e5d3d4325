"""The engine cuda refuses where it cannot run, without loading its modules; on a double of cuda-bindings."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import metalnb as mnb
from metalnb.engine import cuda


class Driver(ModuleType):
    """``cuda.bindings.driver``, with only its initialization."""

    def __init__(self, answer: Any) -> None:
        super().__init__("cuda.bindings.driver")
        self.answer = answer

    def cuInit(self, _flags: int) -> tuple[Any]:  # noqa: N802  (the driver's name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return (self.answer,)

    def cuGetErrorString(self, _status: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"no CUDA-capable device is detected"


def installed(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    for name in ("cuda", "cuda.bindings"):
        package = ModuleType(name)
        package.__spec__, package.__path__ = ModuleSpec(name, None, is_package=True), []
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", Driver(answer))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("Failed to dlopen libcuda.so.1"), r"NVIDIA GPU and its driver \(libcuda\), which is not on this"),
        (100, r"the driver says: no CUDA-capable device is detected \(see nvidia-smi\)"),
    ],
)
def test_missing_driver_or_gpu_is_reported(answer: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, answer)
    monkeypatch.delitem(sys.modules, "metalnb.engine.cuda.cuda_engine", raising=False)
    with pytest.raises(mnb.EngineUnavailable, match=said):
        cuda.open_engine()
    assert "metalnb.engine.cuda.cuda_engine" not in sys.modules


def test_missing_package_error_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)  # as a module that cannot be imported
    with pytest.raises(mnb.EngineUnavailable, match=r'the package cuda-bindings: pip install "metalnb\[cuda\]"'):
        cuda.open_engine()


def test_a_script_named_cuda_is_neither_run_nor_taken_for_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cuda.py").write_text("raise SystemExit('this script was run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "cuda"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(mnb.EngineUnavailable, match="the package cuda-bindings"):
        cuda.open_engine()


def test_gpu_with_the_given_index_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from metalnb.engine.cuda import nvidia_driver

    class Gpu(Exception):
        """The requested module only, without the rest of the engine."""

    def opened(index: int) -> Any:
        raise Gpu(index)

    installed(monkeypatch, 0)
    monkeypatch.setattr(nvidia_driver, "open_gpu", opened)
    with pytest.raises(Gpu) as found:
        cuda.open_engine(3)
    assert found.value.args == (3,)
