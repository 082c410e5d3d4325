"""Every name that the engine `metal` calls, compared with the tables in PyObjC's wheel for macOS.

The wheel is downloaded and read, not installed. `UNLISTED` has the names that its tables lack, each with Apple's header
that declares it: PyObjC finds a class's own methods in the Objective-C runtime, so only a Mac can test these.
"""

import ast
import functools
import queue
import re
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import metal_double
import numpy as np
import pytest
from metal_double.structures import CONSTANTS, STRINGS

from metalnb.engine import metal
from metalnb.engine.metal.faults import _MEANING, _STATE
from metalnb.engine.metal.libraries import _SCALARS
from metalnb.msl.language.versions import VERSIONS

PACKAGE = Path(metal.__file__).parent
PACKAGES = ("pyobjc-framework-Metal", "pyobjc-framework-Cocoa", "pyobjc-core")
PLATFORMS = ("macosx_11_0_universal2", "macosx_10_9_universal2")

UNLISTED = {
    "setLanguageVersion:": "MTLLibrary.h", "setMathMode:": "MTLLibrary.h", "setPreprocessorMacros:": "MTLLibrary.h",
    "setMathFloatingPointFunctions:": "MTLLibrary.h", "setErrorOptions:": "MTLCommandBuffer.h",
    "setLogState:": "MTLCommandBuffer.h", "setLevel:": "MTLLogState.h", "setBufferSize:": "MTLLogState.h",
    "setConstantValue:type:atIndex:": "MTLFunctionConstantValues.h", "localizedDescription": "NSError.h",
    "code": "NSError.h", "userInfo": "NSError.h", "init": "NSObject.h", "sharedCaptureManager": "MTLCaptureManager.h",
    "stopCapture": "MTLCaptureManager.h", "setCaptureObject:": "MTLCaptureManager.h",
    "setDestination:": "MTLCaptureManager.h", "setOutputURL:": "MTLCaptureManager.h",
    "MTLCaptureDescriptor": "MTLCaptureManager.h", "fileURLWithPath:": "NSURL.h",
    "MTLFunctionConstantValues": "MTLFunctionConstantValues.h", "MTLLogStateDescriptor": "MTLLogState.h",
    "setCounterSet:": "MTLCounters.h", "setStorageMode:": "MTLCounters.h", "setSampleCount:": "MTLCounters.h",
    "MTLCounterSampleBufferDescriptor": "MTLCounters.h", "computePassDescriptor": "MTLComputePass.h",
    "sampleBufferAttachments": "MTLComputePass.h", "objectAtIndexedSubscript:": "MTLComputePass.h",
    "setSampleBuffer:": "MTLComputePass.h", "setStartOfEncoderSampleIndex:": "MTLComputePass.h",
    "setEndOfEncoderSampleIndex:": "MTLComputePass.h", "MTLComputePassDescriptor": "MTLComputePass.h",
    "setUrl:": "MTLBinaryArchive.h", "MTLBinaryArchiveDescriptor": "MTLBinaryArchive.h",
    "setBinaryArchives:": "MTLComputePipeline.h", "setComputeFunction:": "MTLComputePipeline.h",
    "setShaderValidation:": "MTLComputePipeline.h",
    "description": "NSObject.h",
}  # fmt: skip
PYTHON = (str, bytes, dict, list, queue.SimpleQueue, np.ndarray)  # whose methods are not Metal's
BRIDGE = (
    "registerMetaDataForSelector", "macos_available", "autorelease_pool", "as_buffer", "pyobjc_id", "objc_object",
    "c_void_p",
)  # fmt: skip


class Wheel(NamedTuple):
    """The contents of PyObjC's tables.

    Attributes
    ----------
    selectors : dict of str to list of (str, dict)
        The argument tables of each selector, with their class: ``"NSObject"`` for a protocol.
    constants : dict of str to int
    names : set of str
        Classes, functions, structures and string constants.
    core : bytes
        pyobjc-core, from its wheel.
    """

    selectors: dict[str, list[tuple[str, dict[int, Any]]]]
    constants: dict[str, int]
    names: set[str]
    core: bytes

    def listed(self) -> set[str]:
        """Return the selectors of protocols and of classes that the engine creates; other classes may share names."""
        made = {"NSObject", *(name for text in texts() for name in used(text).names)}
        return {name for name, tables in self.selectors.items() if any(owner in made for owner, _ in tables)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    folder = tmp_path_factory.mktemp("pyobjc")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--retries", "1"]
    command += [f"--platform={name}" for name in PLATFORMS]
    command += ["--python-version", "311", "--timeout", "20", "--dest", str(folder), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"PyObjC's wheel is not available: {done.stderr.strip().splitlines()[-1]}")
    return read(*(next(folder.glob(f"pyobjc_{name}*.whl")) for name in ("framework_metal", "framework_cocoa", "core")))


def read(framework: Path, cocoa: Path, core: Path) -> Wheel:
    """Execute the wheel's table on a stub of the module that it fills."""
    selectors: dict[str, list[tuple[str, dict[int, Any]]]] = {}
    owners: set[str] = set()

    def register(owner: bytes, name: bytes, table: dict[str, Any]) -> None:
        owners.add(owner.decode())
        selectors.setdefault(name.decode(), []).append((owner.decode(), table.get("arguments", {})))

    stub = types.ModuleType("objc")
    ignored = {name: lambda *_: None for name in ("_updatingMetadata", "createStructType")}
    stub.__dict__.update(ignored, registerNewKeywordsFromSelector=lambda *_: None, arch="arm64")
    stub.__dict__["registerMetaDataForSelector"] = register
    tables: dict[str, Any] = {}
    with zipfile.ZipFile(framework) as archive, pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "objc", stub)
        exec(archive.read("Metal/_metadata.py"), tables)  # noqa: S102  (it is data in the form of a program)
    with zipfile.ZipFile(core) as archive:
        code = b"".join(archive.read(n) for n in archive.namelist() if n.startswith("objc/"))
    with zipfile.ZipFile(cocoa) as archive:
        foundation = set(re.findall(r'"(NS\w+)"', archive.read("Foundation/_metadata.py").decode()))
    constants = {name: int(value) for name, value in re.findall(r"\$(\w+)@(-?\d+)", tables["enums"])}
    names = (
        owners
        | foundation
        | set(tables["functions"])
        | set(tables["misc"])
        | set(re.findall(r"\$(\w+)", tables["constants"]))
    )
    return Wheel(selectors, constants, names, code)


class Used(NamedTuple):
    """The Metal names that one of the engine's sources uses."""

    selectors: set[str]
    names: set[str]


def used(source: str) -> Used:
    """Find them: calls of names that end in ``_``, or of methods that are not Python's; ``metal.MTL…`` and NS…."""
    tree = ast.parse(source)
    selectors = {text.replace("_", ":") for text in strings(tree) if re.fullmatch(r"[a-z]\w*[a-z]_", text)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith(("MTL", "NS")):
            names.add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            own = name.startswith("_") or name in ours() or any(hasattr(kind, name) for kind in PYTHON)
            if name.endswith("_") and not name.startswith("_"):
                selectors.add(name.replace("_", ":"))
            elif not node.args and not node.keywords and not own:
                selectors.add(name)
    return Used({s for s in selectors if not s.startswith(("MTL", "NS"))}, names)


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def texts() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(PACKAGE.glob("*.py"))]


@functools.cache
def ours() -> set[str]:
    """Return the functions that the engine defines, and those of metalnb and of Python's modules that it calls."""
    defined = {n.name for text in texts() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    others = {
        "store",
        "scratch",
        "mac_ver",
        "read_bytes",
        "Lock",
        "WeakValueDictionary",
        "autorelease_pool",
        "done",
        "elapsed",
        "resolve",
        "SimpleQueue",
        "system",
    }
    return defined | others


def unknown(sources: list[str], wheel: Wheel) -> set[str]:
    """Return the names that are neither in the wheel's tables nor in `UNLISTED`."""
    found = [used(source) for source in sources]
    selectors = {name for one in found for name in one.selectors}
    names = {name for one in found for name in one.names}
    known = {*wheel.names, *wheel.constants, *UNLISTED}
    return {s for s in selectors if s not in UNLISTED} - wheel.listed() | (names - known)


def test_no_function_has_a_selectors_name(wheel: Wheel) -> None:
    """Otherwise calls of that selector would be taken for the engine's own function and not looked up."""
    defined = {n.name for text in texts() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    assert defined & {*wheel.listed(), *UNLISTED} - {"init"} == set()


def test_every_selector_class_function_and_constant_is_in_the_wheels_tables(wheel: Wheel) -> None:
    found = [used(text) for text in texts()]
    selectors, names = set().union(*(f.selectors for f in found)), set().union(*(f.names for f in found))
    assert unknown(texts(), wheel) == set()
    assert len(selectors) > 40
    assert len(names) > 15


def test_names_composed_at_run_time_exist(wheel: Wheel) -> None:
    made = {f"MTLLanguageVersion{major}_{minor}" for major, minor in VERSIONS}
    vectors = ("", "2", "3", "4")
    made |= {f"MTLDataType{name}{count}" for name, _ in _SCALARS.values() for count in vectors}
    made |= {f"MTLCommandBufferError{word}" for word in _MEANING}
    made |= {f"MTLCommandEncoderErrorState{word}" for word in _STATE}
    assert made - wheel.constants.keys() == set()
    assert made - CONSTANTS.keys() == set()


def test_unlisted_names_are_missing_from_the_wheel_and_used(wheel: Wheel) -> None:
    found = [used(text) for text in texts()]
    both = {name for one in found for name in (*one.selectors, *one.names)}
    assert set(UNLISTED) & {*wheel.listed(), *wheel.names, *wheel.constants} == set()
    assert set(UNLISTED) - both == set()


def test_unlisted_names_are_documented_as_never_seen() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mac.md").read_text("utf-8")
    listed = set(re.findall(r"`([\w:]+)`", page.split("## Never seen")[1]))
    assert set(UNLISTED) - listed == set()


def test_the_bridges_own_functions_are_in_its_wheel(wheel: Wheel) -> None:
    assert [name for name in BRIDGE if name.encode() not in wheel.core] == []


@pytest.mark.parametrize(("name", "misspelled"), [
    ("newBufferWithLength_options_", "newBufferWithLenght_options_"),
    ("setBuffer_offset_atIndex_", "setBuffer_atOffset_atIndex_"),
    ("staticThreadgroupMemoryLength", "staticThreadGroupMemoryLength"),
    ("waitUntilCompleted", "waitUntilComplete"),
    ("setMathMode_", "setMathmode_"),
    ("setPreprocessorMacros_", "setPreprocessorMacro_"),
    ("MTLResourceStorageModeShared", "MTLResourceStorageShared"),
    ("MTLCreateSystemDefaultDevice", "MTLCreateDefaultDevice"),
    ("MTLCompileOptions", "MTLCompilerOptions"),
    ("MTLCommandBufferEncoderInfoErrorKey", "MTLCommandBufferEncoderInfoKey"),
    ("serializeToURL_error_", "serialiseToURL_error_"),
    ("resolveCounterRange_", "resolveCountersRange_"),
    ("shaderValidation()", "shadervalidation()"),
    ("MTLPipelineOptionFailOnBinaryArchiveMiss", "MTLPipelineOptionFailOnArchiveMiss"),
    ("NSRange", "NSrange"),
])  # fmt: skip
def test_a_misspelled_name_is_found(wheel: Wheel, name: str, misspelled: str) -> None:
    sources = [text.replace(name, misspelled) for text in texts()]
    assert sources != texts()
    wrong = misspelled if misspelled.startswith(("MTL", "NS")) else misspelled.replace("_", ":").removesuffix("()")
    assert unknown(sources, wheel) == {wrong}


# ---- The double is compared with the same tables ---------------------------------------------------------------------

ENCODED = {
    "Q": (b"Q", None), "q": (b"q", None), "Z": (b"Z", None), "S": (b"{MTLSize=QQQ}", None), "@": (b"@", None),
    "#": (b"@", None), "n": (b"^v", b"n"), "o": (b"^@", b"o"), "?": (b"@?", None),
    "R": (b"{_NSRange=QQ}", None), "t": (b"^Q", b"o"), "p": (b"^@", None),
}  # fmt: skip


def test_the_doubles_selectors_take_the_tables_arguments(wheel: Wheel) -> None:
    checked = 0
    for name, kinds in metal_double.SELECTORS.items():
        assert name in wheel.listed() or name in UNLISTED, name
        for owner, table in wheel.selectors.get(name, []):
            for place, about in table.items():
                if owner != "NSObject" and not hasattr(metal_double, owner):
                    continue  # another class's
                kind, modifier = ENCODED[kinds[place - 2]]
                assert about.get("type", kind) == kind, (name, place)
                assert about.get("type_modifier") == modifier, (name, place)
                checked += 1
    assert checked > 30


def test_the_doubles_constants_have_their_values(wheel: Wheel) -> None:
    assert {name: wheel.constants.get(name) for name in CONSTANTS} == CONSTANTS
    assert set(STRINGS) <= wheel.names


def test_the_double_has_no_more_than_is_used() -> None:
    called = set().union(*(used(text).selectors for text in texts()))
    assert set(metal_double.SELECTORS) - called - {"length"} == set()
