"""The double's pipelines: from functions, from descriptors, from binary archives; with shader validation."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from metalnb.engine.base import compiled
from metalnb.errors import CompileError

from .compiler import MTLFunction, engine, report
from .runtime import NSURL, NSError, ObjCObject, must, selector
from .structures import CONSTANTS

_MOST = 1024
_binaries: dict[tuple[str, str], Any] = {}  # of the engine that replaces the GPU's compiler
_MAGIC = "an archive of the double's\n"


class MTLComputePipelineDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.function: MTLFunction | None = None
        self.archives: list[MTLBinaryArchive] = []
        self.validation = 0

    @selector("setComputeFunction:", "@")
    def setComputeFunction_(self, function: MTLFunction | None) -> None:
        self.function = function

    @selector("setBinaryArchives:", "@")
    def setBinaryArchives_(self, archives: list[MTLBinaryArchive] | None) -> None:
        must(all(isinstance(a, MTLBinaryArchive) for a in archives or ()), "not an archive")
        self.archives = archives or []

    @selector("setShaderValidation:", "q")
    def setShaderValidation_(self, validation: int) -> None:
        must(validation in {0, 1, 2}, f"no MTLShaderValidation: {validation}")
        self.validation = validation


class MTLBinaryArchiveDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.url: NSURL | None = None

    @selector("setUrl:", "@")
    def setUrl_(self, url: NSURL | None) -> None:
        self.url = url


class MTLBinaryArchive(ObjCObject):
    def __init__(self, held: set[str]) -> None:
        self.held = held

    @selector("addComputePipelineFunctionsWithDescriptor:error:", "#o")
    def addComputePipelineFunctionsWithDescriptor_error_(
        self, described: MTLComputePipelineDescriptor, error: None
    ) -> tuple[bool, NSError | None]:
        must(described.function is not None, "a pipeline of no function")
        state, refused = make_pipeline(described.function)
        if state is not None:
            self.held.add(fingerprint(described.function))
        return state is not None, refused

    @selector("serializeToURL:error:", "#o")
    def serializeToURL_error_(self, url: NSURL, error: None) -> tuple[bool, NSError | None]:
        must(self.held, "an archive of nothing")
        must(not Path(url.path).exists(), "the file exists")
        Path(url.path).write_text(_MAGIC + "\n".join(sorted(self.held)), "utf-8")
        return True, None


def opened(described: MTLBinaryArchiveDescriptor) -> tuple[MTLBinaryArchive | None, NSError | None]:
    """Open an archive's file or, without one, create an empty archive."""
    if described.url is None:
        return MTLBinaryArchive(set()), None
    file = Path(described.url.path)
    text = file.read_text("utf-8", "replace") if file.exists() else ""
    if not text.startswith(_MAGIC):
        return None, NSError("Invalid binary archive", 1)
    return MTLBinaryArchive(set(text[len(_MAGIC) :].split())), None


def fingerprint(function: MTLFunction) -> str:
    """Return the key by which Metal identifies a compiled function."""
    unit = function.unit
    constants = sorted((c.index, c.type, value) for c, value in unit.constants.items())
    parts = unit.signature.name, unit.cell.edited.original, constants, unit.math, unit.version
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def make_pipeline(function: MTLFunction) -> tuple[MTLComputePipelineState | None, NSError | None]:
    """Compile a function, as Metal does for one that is in no archive."""
    if not function.specialized:
        return None, NSError("function f cannot be used to build a pipeline state", 3)
    try:
        state = MTLComputePipelineState(function)
    except CompileError as refused:
        return None, report(refused)
    MTLComputePipelineState.compilations.append(function.unit.signature.name)
    return state, None


def described_state(
    described: MTLComputePipelineDescriptor, options: int
) -> tuple[MTLComputePipelineState | None, NSError | None]:
    must(described.function is not None, "a pipeline of no function")
    if any(fingerprint(described.function) in archive.held for archive in described.archives):
        return MTLComputePipelineState(described.function), None
    if options & CONSTANTS["MTLPipelineOptionFailOnBinaryArchiveMiss"]:
        return None, NSError("not in the binary archives", 2)
    state, refused = make_pipeline(described.function)
    if state is not None and MTLComputePipelineState.validates:
        state.validation = described.validation
    return state, refused


class MTLComputePipelineState(ObjCObject):
    most = _MOST  # a test lowers it, as high register use would
    validates = True  # whether the process has shader validation
    compilations: list[str] = []  # noqa: RUF012  (for all devices)

    def __init__(self, function: MTLFunction) -> None:
        self.unit, self.library = function.unit, function.library
        key = engine().name, fingerprint(function)
        self.binary = _binaries.get(key) or compiled(engine(), function.unit)
        _binaries[key] = self.binary
        self.validation = 0

    @selector("maxTotalThreadsPerThreadgroup")
    def maxTotalThreadsPerThreadgroup(self) -> int:
        return min(self.unit.signature.max_threads or _MOST, self.most)

    @selector("threadExecutionWidth")
    def threadExecutionWidth(self) -> int:
        return 32

    @selector("staticThreadgroupMemoryLength")
    def staticThreadgroupMemoryLength(self) -> int:
        return int(self.binary.threadgroup_bytes)

    @selector("shaderValidation")
    def shaderValidation(self) -> int:
        return self.validation

    def start(self, arguments: list[Any], grid: tuple[int, ...], group: tuple[int, ...]) -> None:
        engine().launch(self.binary, arguments, grid, group).wait()
