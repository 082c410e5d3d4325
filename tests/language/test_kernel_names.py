"""Names that kernels, parameters and members may have; kernels in namespaces; kernel templates and their overloads."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"
N = 64  # threads
X = np.arange(N, dtype=np.float32) - 20


@pytest.mark.parametrize("name", ["pipe", "local", "global", "generic", "read_only"])
def test_opencl_words_are_names_of_kernels_parameters_and_members(name: str) -> None:
    cell = STD + f"struct P {{ uint {name}; }};\n"
    cell += f"kernel void {name}(device uint* out, constant P& read_write, {ID}) {{ out[i] = read_write.{name} + i; }}"
    program = mnb.compile(cell, engine="cpu")
    assert list(program) == [name]
    out = np.zeros(N, np.uint32)
    program[name](out, read_write={name: 5}, grid=N)
    np.testing.assert_array_equal(out, 5 + np.arange(N))
    assert [p.name for p in program[name].signature.params] == ["out", "read_write"]


@pytest.mark.parametrize("name", ["queue_t", "event_t", "sampler_t", "image2d_t", "atomic_long", "pipe", "vec_step"])
def test_opencl_types_are_names_of_structs(name: str) -> None:
    cell = STD + f"struct {name} {{ uint v; }};\nstruct S {{ {name} x[2]; }};\n"
    cell += f"kernel void k(device {name}* out, constant S& s, {ID}) {{ out[i].v = s.x[1].v + i; }}"
    program = mnb.compile(cell, engine="cpu")
    assert str(program.k.signature.params[0].type) == name
    out, s = np.zeros(N, program.dtype(name)), np.zeros((), program.dtype("S"))
    s["x"]["v"] = 3, 5
    program.k(out, s)
    np.testing.assert_array_equal(out["v"], 5 + np.arange(N))
    with pytest.raises(mnb.CompileError, match=f"no member named 'w' in '{name}'"):
        mnb.compile(cell.replace("out[i].v", "out[i].w"), engine="cpu")


@pytest.mark.parametrize("name", ["to_global", "to_local", "read_pipe", "work_group_commit_read_pipe"])
def test_opencl_functions_are_names_of_functions_and_kernels(name: str) -> None:
    cell = STD + f"namespace a {{ uint {name}(uint x, uint y) {{ return x + y; }} }}\n"
    cell += f"kernel void {name}(device uint* out, {ID}) {{ out[i] = a::{name}(i, 1); }}"
    program = mnb.compile(cell, engine="cpu")
    out = np.zeros(N, np.uint32)
    program[name](out)
    np.testing.assert_array_equal(out, 1 + np.arange(N))


def test_a_parameter_may_be_called_self() -> None:
    k = mnb.compile(STD + f"kernel void k(device uint* self, {ID}) {{ self[i] = i; }}", engine="cpu").k
    out = np.zeros(N, np.uint32)
    k(self=out)
    np.testing.assert_array_equal(out, np.arange(N))


def test_kernels_of_one_name_in_two_namespaces() -> None:
    cell = STD + "".join(f"namespace {n} {{ kernel void k(device uint* x, {ID}) {{ x[i] = {v}; }} }}\n"
                         for n, v in (("a", 1), ("b", 2)))  # fmt: skip
    program = mnb.compile(cell + f"kernel void other(device uint* x, {ID}) {{ x[i] = 3; }}", engine="cpu")
    assert sorted(program) == ["a::k", "b::k", "other"]
    x = np.zeros(1, np.uint32)
    for name, value in (("a::k", 1), ("b::k", 2), ("other", 3)):
        program[name](x)
        assert x[0] == value


def test_a_kernel_template_may_be_named_as_a_library_function() -> None:
    cell = STD + f"""template <typename T, typename U>
kernel void cross(device T* o [[buffer(0)]], constant U* a [[buffer(1)]], {ID}) {{ const U c = cross(a[i],
    a[i + 1]); o[i] = c.x; }}
template [[host_name("cross_float")]] kernel void cross<float, float3>(device float* o [[buffer(0)]],
                                                                       constant float3* a [[buffer(1)]], {ID});"""
    a = np.zeros((4, 4), np.float32)
    a[:, :3] = np.random.default_rng(1).integers(-5, 5, (4, 3))
    o = np.zeros(3, np.float32)
    mnb.compile(cell, engine="cpu").cross_float(o, a)
    np.testing.assert_array_equal(o, np.cross(a[:-1, :3], a[1:, :3])[:, 0])


def test_overloads_of_a_kernel_template() -> None:
    cell = STD + f"""
template <typename T> kernel void sgd(device T* o [[buffer(0)]], {ID}) {{ o[i] -= T(1); }}
template <typename T> kernel void sgd(device T* o [[buffer(0)]], device T* m [[buffer(1)]], {ID}) {{ o[i] -= m[i]; }}
template [[host_name("plain")]] kernel void sgd<float>(device float* o [[buffer(0)]], {ID});
template [[host_name("momentum")]] kernel void sgd<float>(device float* o [[buffer(0)]],
    device float* m [[buffer(1)]], {ID});"""
    program = mnb.compile(cell, engine="cpu")
    o = X.copy()
    program.plain(o)
    program.momentum(o, X)
    np.testing.assert_array_equal(o, np.full(N, -1))
    assert [p.name for p in program.momentum.signature.params] == ["o", "m"]


def test_arguments_of_a_kernel_template_are_deduced() -> None:
    cell = STD + """template <int N> struct P { int n[N]; };
template <typename T, int N>
[[kernel]] void unfold(const device T* in [[buffer(0)]], device T* out [[buffer(1)]],
    const constant P<N>* p [[buffer(2)]],
                       uint3 gid [[thread_position_in_grid]]) { out[gid.x] = in[gid.x] + T(p->n[N - 1]); }
template [[host_name("unfold_f2")]] [[kernel]] void unfold(const device float* in [[buffer(0)]],
    device float* out [[buffer(1)]], const constant P<2>* p [[buffer(2)]], uint3 gid [[thread_position_in_grid]]);"""
    out = np.zeros(N, np.float32)
    program = mnb.compile(cell, engine="cpu")
    program.unfold_f2(X, out, np.array([3, 9], np.int32).view(program.dtype("P<2>")))
    np.testing.assert_array_equal(out, X + 9)
