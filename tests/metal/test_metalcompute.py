"""metalcompute's API: on real Metal where metalcompute can be imported, otherwise on the double, with equal results."""

import copy
import gc
import math
import pickle
import subprocess
import sys
from array import array
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from interrupts import run_together
from metal_module import metal_module

from metalnb.metalcompute.memory import PADDING

mc: ModuleType = metal_module()
DOUBLE = mc.__name__ != "metalcompute"
only_double = pytest.mark.skipif(not DOUBLE, reason="checks the double against metalcompute's source")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SIN = HEAD + """
kernel void test(const device float *in [[ buffer(0) ]], device float *out [[ buffer(1) ]],
                 uint id [[ thread_position_in_grid ]]) {
    out[id] = sin(in[id]) + 10;
}
"""


VERSIONS = """
#if __METAL_VERSION__ == 230
kernel void f(device uint* out [[buffer(0)]], uint id [[thread_position_in_grid]]) { out[id] = __METAL_VERSION__; }
#else
kernel void f(device float* out [[buffer(0)]], constant uint& n [[buffer(1)]]) { out[0] = n; }
#endif
"""


@pytest.fixture(scope="module")
def dev() -> object:
    return mc.Device()


def kernel(dev: object, body: str, arguments: str = "device uint* out [[buffer(0)]]", before: str = "") -> object:
    text = f"{HEAD}{before} kernel void f({arguments}, uint id [[thread_position_in_grid]]) {{ {body} }}"
    return dev.kernel(text).function("f")


# ---- Devices ---------------------------------------------------------------------------------------------------------


def test_devices_have_name_memory_and_rate() -> None:
    devices = mc.get_devices()
    first = devices[0]
    assert isinstance(devices, tuple)
    assert tuple(first[:2]) == (first.deviceName, first.recommendedWorkingSetSize)
    assert tuple(first[2:]) == (first.maxTransferRate, first.hasUnifiedMemory)
    assert repr(first).startswith(f"metalcompute_device(deviceName={first.deviceName!r}, recommendedWorkingSetSize=")
    assert str(mc.Device(0)) == f"metalcompute.Device({first.deviceName})"
    assert str(mc.Device(-1)) == str(mc.Device())


def test_missing_device_raises_metalcomputes_error() -> None:
    for refused in (mc.Device, mc.init):
        with pytest.raises(mc.error, match=r"^Cannot create device$"):
            refused(99)


@only_double
def test_invalid_device_index_is_refused() -> None:
    with pytest.raises(SystemError, match=r"^<class 'metalcompute.Device'> returned a result with an exception set$"):
        mc.Device("0")
    assert str(mc.Device(index=99)) == str(mc.Device())  # keywords are ignored


def test_objects_have_metalcomputes_names(dev: object) -> None:
    program = dev.kernel(SIN)
    function = program.function("test")
    handle = function(1, dev.buffer(4), dev.buffer(4))
    assert [str(x) for x in (program, function, handle)] == [
        "metalcompute.Kernel", "metalcompute.Function", "metalcompute.Run",
    ]  # fmt: skip
    assert str(dev.buffer(12)) == "metalcompute.Buffer(length=12)"


# ---- Buffers ---------------------------------------------------------------------------------------------------------


def test_a_buffer_is_shared_memory(dev: object) -> None:
    buffer = dev.buffer(400)
    view = memoryview(buffer)
    assert (view.nbytes, view.format, view.readonly, view.shape) == (400, "B", False, (400,))
    assert not any(view)
    floats = view.cast("f")
    floats[:] = array("f", range(100))
    assert np.frombuffer(buffer, np.float32).tolist() == list(range(100))
    np.frombuffer(buffer, np.float32)[3] = 7
    assert floats[3] == 7
    assert bytes(buffer)[12:16] == np.float32(7).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        array("f", [1, 2, 3]),
        bytes(range(12)),
        memoryview(bytearray(range(12))).cast("i"),
        np.arange(12, dtype=np.int16).reshape(3, 4),
    ],
    ids=["array", "bytes", "memoryview", "ndarray"],
)  # fmt: skip
def test_a_buffer_may_be_made_as_a_copy_of_another(dev: object, data: object) -> None:
    buffer = dev.buffer(data)
    expected = memoryview(data).tobytes()
    assert bytes(buffer) == expected
    memoryview(buffer)[0] ^= 255
    assert memoryview(data).tobytes() == expected


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "M8[s]", [("a", "u1"), ("b", "f4")]])
def test_a_buffer_copies_arrays_without_a_format(dev: object, dtype: object) -> None:
    data = np.frombuffer(bytes(range(40)), dtype)
    assert bytes(dev.buffer(data)) == data.tobytes()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_buffer_is_not_copied_by_python(dev: object, again: object) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle 'metalcompute\.Buffer' object"):
        again(dev.buffer(8))


@pytest.mark.parametrize(("data", "nbytes"), [(7, 7), (7.9, 7), ("12", 12), (True, 1), (np.int64(5), 8)])
def test_buffer_sizes_are_accepted_as_int_accepts_them(dev: object, data: object, nbytes: int) -> None:
    """Anything that int() accepts, except NumPy's scalars: their buffer protocol takes precedence."""
    assert memoryview(dev.buffer(data)).nbytes == nbytes


@pytest.mark.parametrize("data", [None, "z", [1, 2], math.inf, np.zeros((4, 4))[:, 1]])
def test_non_buffers_are_refused(dev: object, data: object) -> None:
    with pytest.raises(mc.error, match=r"^Unsupported input format$"):
        dev.buffer(data)


@pytest.mark.parametrize("data", [0, -1, 1 << 60, 1 << 70, b""])
def test_impossible_buffer_size_is_refused(dev: object, data: object) -> None:
    with pytest.raises(mc.error, match=r"^Could not make buffer$"):
        dev.buffer(data)


def test_a_buffer_has_the_buffer_protocol_and_nothing_else(dev: object) -> None:
    buffer = dev.buffer(8)
    for wrong in (len, iter, lambda b: b[0], lambda b: b + b, lambda b: b.__setitem__(0, 1)):
        with pytest.raises((TypeError, AttributeError)):
            wrong(buffer)
    other = dev.buffer(8)
    assert buffer != other
    assert buffer == buffer  # noqa: PLR0124
    assert len({buffer, other}) == 2
    assert buffer
    assert type(np.asarray(buffer)) is np.ndarray


# ---- Compile, run, read back -----------------------------------------------------------------------------------------


def test_a_million_sines_are_right(dev: object) -> None:
    count = 1_234_567
    data = dev.buffer(count * 4)
    memoryview(data).cast("f")[:] = array("f", range(count))
    out = dev.buffer(count * 4)
    dev.kernel(SIN).function("test")(count, data, out)
    expected = np.sin(np.arange(count, dtype=np.float32).astype(np.float64)) + 10
    assert np.abs(np.frombuffer(out, np.float32) - expected).max() < 1e-3


def test_a_plain_buffer_is_copied_in_and_never_out(dev: object) -> None:
    data = array("f", [1, 2, 3])
    lost = array("f", [0, 0, 0])
    out = dev.buffer(12)
    sine = dev.kernel(SIN).function("test")
    handle = sine(3, data, out)
    data[0] = 100
    del handle
    assert memoryview(out).cast("f").tolist() == pytest.approx([math.sin(x) + 10 for x in (1, 2, 3)], abs=1e-4)
    sine(3, data, lost)
    assert lost.tolist() == [0, 0, 0]


def test_an_int_argument_allocates_that_many_zero_bytes(dev: object) -> None:
    out = dev.buffer(16)
    arguments = "device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]]"
    kernel(dev, "out[id] = in[id] + 1;", arguments)(4, 16, out)
    assert memoryview(out).cast("I").tolist() == [1, 1, 1, 1]


def test_handles_queue_and_deleting_waits(dev: object) -> None:
    """Dispatches run in order: each one reads the previous result."""
    count = 1 << 16
    buffer = dev.buffer(count * 4)
    step = kernel(dev, "for (uint k = 0; k < 50; ++k) out[id] = out[id] * 3 + 1;")
    handles = [step(count, buffer) for _ in range(200)]
    del handles
    value = 0
    for _ in range(200 * 50):
        value = (value * 3 + 1) % 2**32
    assert (np.frombuffer(buffer, np.uint32) == value).all()


def test_a_handle_keeps_its_buffers(dev: object) -> None:
    step = kernel(dev, "out[id] = in[id];", "device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]]")
    out = dev.buffer(4 << 20)
    handle = step(1 << 20, np.arange(1 << 20, dtype=np.uint32), out)
    del step
    gc.collect()
    del handle
    assert (np.frombuffer(out, np.uint32) == np.arange(1 << 20)).all()


def test_process_exits_with_handles_alive() -> None:
    text = """
import atexit, builtins
def late():  # runs after metalcompute's own exit handler; builtins are destroyed last
    builtins.kept = f(4, dev.buffer(16))
atexit.register(late)
from tests_module import mc
dev = mc.Device()
body = "{ for (int k = 0; k < 99; ++k) a[i] += i; }"
f = dev.kernel(f"kernel void f(device uint* a, uint i [[thread_position_in_grid]]) {body}").function("f")
kept = [f(1 << 18, dev.buffer(1 << 20)) for _ in range(20)]
print("started", flush=True)
""".replace("from tests_module import mc", f"import {mc.__name__} as mc")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")


def test_several_python_threads_may_run_one_kernel(dev: object) -> None:
    step = kernel(dev, "out[id] = id * 2;")
    wrong = []

    def work() -> None:
        for _ in range(25):
            out = dev.buffer(4096)
            step(1024, out)
            if (np.frombuffer(out, np.uint32) != 2 * np.arange(1024)).any():
                wrong.append(out)

    run_together([work] * 4)
    assert not wrong


# ---- Complete threadgroups -------------------------------------------------------------------------------------------

COUNT = """device atomic_uint* seen [[buffer(0)]], device uint* last [[buffer(1)]],
    uint local [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]],
    uint groups [[threadgroups_per_grid]], uint lanes [[threads_per_simdgroup]]"""
COUNT_BODY = """atomic_fetch_add_explicit(&seen[id], 1u, memory_order_relaxed);
    if (local == 0) { last[0] = size; last[1] = groups; last[2] = lanes; }"""


def over_dispatch(dev: object, count: float, limit: int) -> tuple[int, list[int]]:
    """Check that each thread ran once; return their number and the sizes of threadgroups, grid and SIMD-groups."""
    attribute = f"[[max_total_threads_per_threadgroup({limit})]]" if limit else ""
    seen, last = dev.buffer(8192 * 4), dev.buffer(12)
    kernel(dev, COUNT_BODY, COUNT, attribute)(count, seen, last)
    counts = np.frombuffer(seen, np.uint32)
    ran = int(counts.sum())
    assert (counts[:ran] == 1).all()
    return ran, np.frombuffer(last, np.uint32).tolist()


@pytest.mark.parametrize(
    ("limit", "count", "size", "groups"),
    [
        (256, 1, 256, 1),
        (256, 256, 256, 1),
        (256, 257, 256, 2),
        (64, 1000, 64, 16),
        (32, 33, 32, 2),
        (100, 100, 96, 2),  # complete SIMD-groups only
        (256, 300.9, 256, 2),
    ],
)
def test_kernel_runs_more_threads_than_the_count(dev: object, limit: int, count: float, size: int, groups: int) -> None:
    assert over_dispatch(dev, count, limit) == (size * groups, [size, groups, 32])


@only_double  # a GPU may allow fewer where a kernel needs many registers
@pytest.mark.parametrize(("count", "groups"), [(1, 1), (1024, 1), (1025, 2), (5000, 5)])
def test_kernel_without_a_limit_runs_threadgroups_of_1024(dev: object, count: int, groups: int) -> None:
    assert over_dispatch(dev, count, 0) == (1024 * groups, [1024, groups, 32])


@pytest.mark.parametrize("count", [0, -1])
def test_count_of_zero_runs_no_threads(dev: object, count: int) -> None:
    assert over_dispatch(dev, count, 64) == (0, [0, 0, 0])


@only_double
def test_threads_beyond_the_count_access_padding(dev: object) -> None:
    """1024 threads on a buffer of one element access no other memory."""
    size = 64
    step = kernel(dev, "out[id] = float4x4(1.0f);", "device float4x4* out [[buffer(0)]]")
    buffers = [dev.buffer(size) for _ in range(50)]
    for buffer in buffers:
        step(1, buffer)
    assert all(bytes(b) == np.eye(4, dtype=np.float32).tobytes() for b in buffers)
    assert 1024 * size <= PADDING


# ---- Errors ----------------------------------------------------------------------------------------------------------


def test_bad_program_reports_the_compilers_output(dev: object) -> None:
    with pytest.raises(mc.error, match=r"program_source:3:1: error: unknown type name 'invalid_program'"):
        dev.kernel("\n\ninvalid_program\n")
    with pytest.raises(mc.error, match=r"program_source:4:8: error: use of undeclared identifier 'y'"):
        dev.kernel(f"{HEAD}kernel void f(device float* x [[buffer(0)]]) {{\nx[0] = y; }}")


@only_double
def test_error_has_the_compilers_text_to_the_letter(dev: object) -> None:
    with pytest.raises(mc.error) as caught:
        dev.kernel(f"{HEAD}kernel void f(device float* x) {{\n\tx[0] = y;\n\tx[1] = z;\n}}")
    assert str(caught.value) == (
        "program_source:4:9: error: use of undeclared identifier 'y'\n\tx[0] = y;\n\t       ^\n"
        "program_source:5:9: error: use of undeclared identifier 'z'\n\tx[1] = z;\n\t       ^\n"
    )


def test_unknown_function_raises_metalcomputes_error(dev: object) -> None:
    with pytest.raises(mc.error, match=r"^Function not found$"):
        dev.kernel(SIN).function("unknown")
    with pytest.raises(mc.error, match=r"^Function not found$"):
        dev.kernel("// no kernel at all").function("test")


def test_a_missing_count_and_missing_buffers(dev: object) -> None:
    sine = dev.kernel(SIN).function("test")
    data, out = array("f", [1]), dev.buffer(4)
    for wrong in ((data, out), (out, data), (None, out), ("1", out)):
        with pytest.raises(mc.error, match=r"^First argument should be an integer kernel count$"):
            sine(*wrong)
    for wrong in ((), (1,), (data,)):
        with pytest.raises(mc.error, match=r"^Buffer not found$"):
            sine(*wrong)
    with pytest.raises(mc.error, match=r"^Unsupported input format$"):
        sine(1, None, out)
    with pytest.raises(mc.error, match=r"^Could not make buffer$"):
        sine(1, 0, out)


def test_arguments_of_wrong_types_raise_type_error(dev: object) -> None:
    for wrong, data in ((dev.kernel, (5,)), (dev.kernel(SIN).function, (5,)), (dev.buffer, ()), (dev.kernel, ())):
        with pytest.raises(TypeError):
            wrong(*data)
    with pytest.raises(ValueError, match="embedded null character"):
        dev.kernel("kernel\0")


@only_double
def test_a_count_beyond_the_positions_is_refused(dev: object) -> None:
    sine, out = dev.kernel(SIN).function("test"), dev.buffer(4)
    for wrong in (1j, math.nan, math.inf, 1 << 63):
        with pytest.raises(SystemError, match="returned a result with an exception set"):
            sine(wrong, out, out)
    with pytest.raises(mc.error, match=r"^kernel 'test' got a count of 4,294,967,296: its threads' positions have 32"):
        sine(1 << 32, out, out)


@only_double
def test_too_few_buffers_warn(dev: object) -> None:
    out = dev.buffer(4)
    sine = dev.kernel(SIN).function("test")
    with pytest.warns(RuntimeWarning, match=r"'test' has an argument 'out' \[\[buffer\(1\)\]\], but got 1 buffers"):
        sine(1, out)
    sine(1, out, out, out)  # more buffers than arguments are accepted


@only_double
def test_features_beyond_metalcompute_raise_its_errors(dev: object) -> None:
    bfloat = "kernel void f(device bfloat* x [[buffer(0)]]) { x[0] = x[1]; }"
    with pytest.raises(mc.error, match=r"^program_source:1:22: error: unknown type name 'bfloat'\n"):  # MSL 2.3
        dev.kernel(bfloat)
    constant = kernel(dev, "out[id] = N;", before="constant int N [[function_constant(0)]];")
    with pytest.raises(mc.error, match=r"^Cannot create command encoder$"):  # its code for a failed pipeline state
        constant(1, dev.buffer(4))
    with pytest.raises(mc.error, match=r"^kernel 'f' has an argument 'm' \[\[threadgroup\(0\)\]\]: metalcompute gives"):
        kernel(dev, "m[id] = 1;", "device uint* out, threadgroup uint* m [[threadgroup(0)]]")(1, dev.buffer(4))
    with pytest.raises(mc.error, match=r"^kernel 'f' allows 31 threads in a threadgroup: metalcompute divides by"):
        kernel(dev, "out[id] = 1;", before="[[max_total_threads_per_threadgroup(31)]]")(1, dev.buffer(4))


# ---- The functions of v0.1 -------------------------------------------------------------------------------------------


@pytest.fixture
def simple() -> object:
    mc.release()
    yield mc
    mc.release()


def test_module_functions_compile_and_run(simple: ModuleType) -> None:
    simple.init()
    simple.compile(SIN, "test")
    data, out = array("f", [0, 1, 2]), array("f", [0, 0, 0])
    assert simple.run(data, out, 3) is None
    assert out.tolist() == pytest.approx([math.sin(x) + 10 for x in (0, 1, 2)], abs=1e-4)
    simple.rerun(3)
    image = np.zeros((4, 4), np.uint8)
    simple.compile(HEAD + """kernel void bytes(device const float* a [[buffer(0)]], device uchar* b [[buffer(1)]],
        uint i [[thread_position_in_grid]]) { b[i] = uchar(a[0]) + i; }""", "bytes")  # fmt: skip
    simple.run(np.float32([3]), image, 16)
    assert image.ravel().tolist() == list(range(3, 19))


def test_calls_out_of_order_are_refused(simple: ModuleType) -> None:
    """The messages belong to other errors: metalcompute's two halves number some codes differently."""
    floats = array("f", [0, 1])

    def refused(text: str, call: object, *args: object) -> None:
        with pytest.raises(mc.error, match=f"^{text}$"):
            call(*args)

    refused("Not ready to compile", simple.compile, SIN, "test")
    refused("Not ready to compute", simple.run, floats, floats, 2)
    refused("Failed to make output buffer", simple.rerun, 2)  # not ready to run
    simple.init()
    refused("Failed to find function", simple.compile, SIN, "unknown")
    refused("Not ready to compute", simple.run, floats, floats, 2)
    simple.compile(SIN, "test")
    refused("Failed to make output buffer", simple.rerun, 2)
    refused("Unsupported input format", simple.run, array("i", [1]), floats, 2)
    refused("Unsupported input format", simple.run, 5, floats, 2)
    refused("Unsupported output format", simple.run, floats, array("d", [1]), 2)
    refused("Unsupported output format", simple.run, array("i", [1]), array("d", [1]), 2)
    refused("Unsupported output format", simple.run, floats, bytes(8), 2)
    refused("Failed to make input buffer", simple.run, array("f"), floats, 2)
    refused("Failed to make output buffer", simple.run, floats, array("f"), 2)
    simple.run(floats, floats, 2)
    refused("Failed to find function", simple.compile, SIN, "unknown")
    simple.rerun(2)  # the previous function is still there
    for wrong in (-(1 << 31) - 1, 1 << 31):
        with pytest.raises(OverflowError, match="signed integer is "):
            simple.rerun(wrong)
    refused("Unsupported input format", simple.run, np.zeros(2, ml_dtypes.bfloat16), floats, 2)
    simple.release(None)
    refused("Not ready to compile", simple.compile, SIN, "test")
    for wrong in ((None, "test"), (SIN, 5)):
        with pytest.raises(TypeError, match="must be str, not "):
            simple.compile(*wrong)


# ---- Pictures --------------------------------------------------------------------------------------------------------

MANDELBROT = HEAD + """
struct View { uint width, height, limit; float left, top, step; };
// Shades a point by how soon it leaves the disc of radius 2.
kernel void mandelbrot(constant View& view [[buffer(0)]], device uchar4* pixels [[buffer(1)]],
                       uint id [[thread_position_in_grid]]) {
    if (id >= view.width * view.height) return;
    float2 c = float2(view.left, view.top) + view.step * float2(id % view.width, id / view.width);
    float2 z = 0;
    uint n = 0;
    while (n < view.limit && dot(z, z) <= 4) {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        ++n;
    }
    uchar3 shade = uchar3(n * 5, n * 9, 255 - n * 3);
    pixels[id] = uchar4(shade * uchar(n < view.limit), 255);
}
"""


def test_mandelbrot_set_matches_numpys(dev: object) -> None:
    width, height, limit = 300, 211, 64
    left, top, step = np.float32(-2.0), np.float32(-1.0546875), np.float32(0.0099609375)
    pixels = dev.buffer(width * height * 4)
    view = np.array([(width, height, limit, left, top, step)], "u4,u4,u4,f4,f4,f4")
    dev.kernel(MANDELBROT).function("mandelbrot")(width * height, view, pixels)

    y, x = np.mgrid[:height, :width].astype(np.float32)
    c = (left + step * x) + 1j * (top + step * y)
    z, n = np.zeros(c.shape, np.complex64), np.zeros(c.shape, np.uint32)
    for _ in range(limit):
        inside = z.real**2 + z.imag**2 <= 4
        z[inside] = z[inside] ** 2 + c[inside]
        n += inside
    expected = np.stack([n * 5, n * 9, 255 - n * 3, n * 0 + 255], -1).astype(np.uint8)
    expected[n == limit] = (0, 0, 0, 255)
    got = np.frombuffer(pixels, np.uint8).reshape(height, width, 4)
    same = (got == expected).all(-1)
    assert 0.05 < (n == limit).mean() < 0.5
    assert same.mean() > 0.99  # at the boundary, rounding decides when a point escapes


SPHERES = HEAD + """
// One sphere in each cell of an endless lattice.
static float distance_to_spheres(float3 p, float radius) {
    return length(p - 2 * round(p / 2)) - radius;
}
kernel void spheres(device const float* scene [[buffer(0)]], device uchar4* pixels [[buffer(1)]],
                    uint id [[thread_position_in_grid]]) {
    uint width = uint(scene[0]), height = uint(scene[1]);
    float radius = scene[2];
    float3 eye = float3(scene[3], scene[4], scene[5]);
    float2 at = (float2(id % width, id / width) + 0.5f - float2(width, height) / 2) / height;
    float3 ray = normalize(float3(at, 1));
    float way = 0;
    for (int k = 0; k < 60; ++k) way += distance_to_spheres(eye + way * ray, radius);
    float3 p = eye + way * ray;
    float3 normal = normalize(p - 2 * round(p / 2));
    float light = saturate(dot(normal, normalize(float3(-1, -2, -1.5f)))) * 0.8f + 0.2f;
    float fog = exp(-0.15f * way);
    pixels[id] = uchar4(uchar3(255 * fog * light * (0.5f + 0.5f * normal)), 255);
}
"""


def spheres(width: int, height: int, radius: float, eye: np.ndarray) -> np.ndarray:
    """Return the picture in float64, as floats from 0 to 255."""
    y, x = np.mgrid[:height, :width]
    ray = np.stack([(x + 0.5 - width / 2) / height, (y + 0.5 - height / 2) / height, np.ones((height, width))], -1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    way = np.zeros((height, width, 1))
    for _ in range(60):
        p = eye + way * ray
        way += np.linalg.norm(p - 2 * np.round(p / 2), axis=-1, keepdims=True) - radius
    p = eye + way * ray
    normal = p - 2 * np.round(p / 2)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    sun = np.array([-1, -2, -1.5]) / np.linalg.norm([-1, -2, -1.5])
    light = np.clip((normal * sun).sum(-1, keepdims=True), 0, 1) * 0.8 + 0.2
    return 255 * np.exp(-0.15 * way) * light * (0.5 + 0.5 * normal)


def test_ray_marched_spheres_match_numpys(dev: object) -> None:
    width, height, radius, eye = 320, 200, 0.45, np.array([0.9, 1.1, -0.3])
    pixels = dev.buffer(width * height * 4)
    scene = array("f", [width, height, radius, *eye])
    dev.kernel(SPHERES).function("spheres")(width * height, scene, pixels)
    got = np.frombuffer(pixels, np.uint8).reshape(height, width, 4)
    expected = spheres(width, height, radius, eye)
    assert (got[..., 3] == 255).all()
    assert got[..., :3].std() > 10  # the picture is not empty
    near = np.abs(got[..., :3] - expected).max(-1) <= 1.5
    assert near.mean() > 0.97  # a ray that grazes a sphere may or may not hit it


def test_the_language_is_msl_2_3(dev: object) -> None:
    out = dev.buffer(8)
    dev.kernel(HEAD + VERSIONS).function("f")(2, out)
    assert np.frombuffer(out, np.uint32).tolist() == [230, 230]
