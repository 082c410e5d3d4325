"""A profile's display: findings with line, count and cure; text, page and pictures; a device's times."""

import re
from dataclasses import replace

import numpy as np
import pytest
from measuring.profiling.profiled_kernels import LONG_LOOP

import metalnb as mnb
from metalnb.profiling.access_picture import access_caption, draw_access
from metalnb.profiling.cost_findings import findings
from metalnb.profiling.device_table import DEVICES
from metalnb.profiling.occupancy import occupancy
from metalnb.profiling.profile_record import Profile
from metalnb.profiling.time_bounds import describe_estimate, time_bounds

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
TILE = """kernel void f(device const float* x, device float* out, uint2 i [[thread_position_in_threadgroup]],
    uint l [[thread_index_in_threadgroup]]) {
    threadgroup float t[32][32];
    t[i.y][i.x] = x[l];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[l] = t[i.x][i.y] * 2;
}"""
TRANSPOSE = """kernel void f(device const float* x, device float* out, uint2 g [[thread_position_in_grid]]) {
    out[g.x * 64 + g.y] = x[g.y * 64 + g.x];
}"""


def profiled(text: str, *args: object, **call: object) -> Profile:
    return mnb.profile(mnb.compile(HEAD + text).f, *args, **call)


@pytest.fixture
def tile() -> Profile:
    x = np.zeros((32, 32), np.float32)
    return profiled(TILE, x, np.zeros_like(x), threadgroup=(32, 32))


@pytest.fixture
def transpose() -> Profile:
    x = np.zeros((64, 64), np.float32)
    return profiled(TRANSPOSE, x, np.zeros_like(x), threadgroup=(32, 8))


# ---- Findings.


def test_a_bank_conflict_is_named_with_its_line_count_and_cure(tile: Profile) -> None:
    (found,) = findings(tile)
    assert (found.line, found.kind) == (8, "conflicts")
    assert found.sentence == (
        "line 8: 32 lanes need 32 passes over the banks of threadgroup memory (t) where 1 would do: 992 extra passes; "
        "neighbors are 32 words apart, and there are 32 banks. Make the array's rows 1 element longer, so that the "
        "elements of a column are in different banks."
    )


def test_scattered_conflicts_are_not_cured_by_padding() -> None:
    text = """kernel void f(device const uint* x, device uint* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup uint t[1024];
        t[x[l]] = l;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[l];
    }"""
    x = np.arange(32, dtype=np.uint32) ** 2  # square tiles share banks
    found = next(f for f in findings(profiled(text, x, np.zeros_like(x), threadgroup=32)) if f.kind == "conflicts")
    assert "the lanes' addresses are scattered. Padding does not help" in str(found)


def test_a_scattered_access_is_named_with_its_stride(transpose: Profile) -> None:
    (found,) = findings(transpose)
    assert (found.line, found.kind) == (4, "uncoalesced")
    assert found.sentence == (
        "line 4: 32 lanes write 32 lines of 128 bytes (32 sectors of 32) of out and use 4 bytes of each; neighbors "
        "are 256 bytes apart. Swap the indices, or stage the tile through threadgroup memory."
    )


def test_good_kernel_has_no_finding() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = x[i] * 2;
    }"""
    profile = profiled(text, np.zeros(4096, np.float32), np.zeros(4096, np.float32))
    assert findings(profile) == ()


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("atomics", "atomic_fetch_add_explicit((device atomic_uint*)y, 1, memory_order_relaxed);",
         "31 share an address with an earlier lane, up to 32 lanes at one"),
        ("divergence", "if (i % 2) { float s = x[i]; for (int k = 0; k < 99; ++k) s = s * s + x[k]; y[i] = s; }",
         "with 16.1 of 32 lanes"),
        ("reread", "float s = 0; for (int k = 0; k < 512; ++k) s += x[k * 8 + i % 8]; y[i] = s;", "Stage a tile"),
        ("narrow", "device const char* c = (device const char*)x; device char* d = (device char*)y; d[i] = c[i] + 1;",
         "Let each lane take char4"),
        ("private", "float own[64]; for (int k = 0; k < 64; ++k) own[k] = x[k]; y[i] = own[as_type<uint>(x[i]) % 64];",
         "not in registers"),
        ("uncoalesced", "y[i] = x[as_type<uint>(x[i]) * 4099 % 4096 ^ (i * i * 1237 % 4096)];", "scattered"),
    ],
)  # fmt: skip
def test_each_kind_of_finding_names_its_line(kind: str, text: str, said: str) -> None:
    head = "kernel void f(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {\n"
    profile = profiled(head + text + "\n}", np.zeros(4096, np.float32), np.zeros(4096, np.float32), threadgroup=128)
    first = next(one for one in findings(profile) if one.kind == kind)
    assert first.line == 4
    assert said in first.sentence


def test_uniform_reads_are_no_finding() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        float s = 0;
        for (uint k = 0; k < 64; ++k) s += x[k * 64];
        out[i] = s;
    }"""
    profile = profiled(text, np.zeros(4096, np.float32), np.zeros(4096, np.float32))
    assert [a.least_sectors for a in profile.accesses if a.name == "x"] == [64 * 128]  # one per SIMD-group
    assert findings(profile) == ()


def test_barrier_waits_are_a_finding() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[256];
        float s = x[l];
        if (l < 32)
            for (int k = 0; k < 1000; ++k) s = s * s + 1.0f;
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[255 - l];
    }"""
    profile = profiled(text, np.zeros(256, np.float32), np.zeros(256, np.float32), grid=256, threadgroup=256)
    (first,) = findings(profile)
    assert (first.line, first.kind) == (9, "waiting")
    assert "most for SIMD-group 0" in first.sentence


# ---- The text.


def test_the_text_and_the_page_state_the_same(tile: Profile) -> None:
    text = repr(tile)
    assert text.startswith("f: 32 × 32 threads in threadgroups of 32 × 32; its one threadgroup counted\n")
    assert "1,024 flops" in text
    assert "line 8: 32 lanes need 32 passes" in text
    row = next(line for line in text.splitlines() if line.endswith("out[l] = t[i.x][i.y] * 2;"))
    assert row.split()[:2] == ["8", "91"]
    assert "992" in row
    page = tile._repr_html_()
    for figure in ("1,024 flops", "32 × 32 threads", "992"):
        assert figure in page


def test_sample_is_labeled_as_a_sample() -> None:
    x = np.zeros(1 << 20, np.float32)
    profile = profiled(LONG_LOOP, x, np.zeros_like(x), threadgroup=256, seconds=0.02)
    assert f"{profile.sampled:,} of 4,096 threadgroups counted, counts scaled to all" in repr(profile)


# ---- The page and its pictures.


def test_the_page_marks_accesses_in_the_source_and_holds_their_pictures(tile: Profile) -> None:
    page = tile._repr_html_()
    marked = re.findall(r'class="mp-at( mp-fine)?" role="button" tabindex="0" data-a="(\d+)">(\w+)<', page)
    assert marked == [
        (" mp-fine", "0", "t"), (" mp-fine", "1", "x"), (" mp-fine", "2", "out"), ("", "3", "t"),
    ]  # fmt: skip
    assert page.count("<details data-a=") == 4
    assert "<b>32 passes for 1</b>" in page
    assert page.count("<svg class=") == 4
    assert "http" not in page  # static: nothing is fetched


def test_a_kernel_that_does_nothing_has_a_page() -> None:
    profile = profiled("kernel void f(device float* out) {}", np.zeros(64, np.float32), grid=64)
    assert findings(profile) == ()
    page = profile._repr_html_()
    assert "nothing that takes time" in page
    assert page.count("<tbody") == 3
    assert "nothing that takes time" in repr(profile)


def test_comments_are_marked_and_what_stands_before_a_line_takes_no_room() -> None:
    text = """kernel void f(device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = max(float(i), 2.0f);  // of kernel
    }"""
    page = profiled(text, grid=32)._repr_html_()
    assert '<span class="c">// of kernel</span>' in page
    assert '<pre class="mp-code" style="--i:8ch"><span class="mp-indent">        </span><span class="mp-at' in page


def test_a_page_escapes_the_source() -> None:
    text = """kernel void f(device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = i < 3 && i > 1 ? 1 : 2; // </script><b>
    }"""
    page = profiled(text, grid=32)._repr_html_()
    assert "</script><b>" not in page
    assert "&lt;/script&gt;" in page


def test_the_picture_of_a_conflict_shows_one_bank(tile: Profile) -> None:
    access = next(a for a in tile.accesses if a.conflicts)
    assert access_caption(access, 32) == (
        "lanes 0 to 31 of threadgroup 0 read 4 bytes each, 128 bytes apart; a row is one word in each of 32 banks"
    )
    drawn = draw_access(access)
    columns = {float(x) for x in re.findall(r'<g><title>lane \d+</title><rect x="([\d.]+)"', drawn)}
    assert len(columns) == 1
    assert 'font-weight="700">32<' in drawn
    assert "+512<" in drawn


def test_the_picture_of_a_scattered_access_shows_its_lines(transpose: Profile) -> None:
    access = next(a for a in transpose.accesses if a.kind == "write")
    drawn = draw_access(access)
    rows = {float(y) for y in re.findall(r'<g><title>lane \d+</title><rect x="[\d.]+" y="([\d.]+)"', drawn)}
    assert len(rows) == 32
    assert "sector 3" in drawn
    assert "+0<" in drawn


# ---- A device's times.


def test_bounds_are_counts_over_rates(tile: Profile) -> None:
    device = DEVICES["NVIDIA H100 SXM"]
    beats = device.clock.value  # one threadgroup: one processor
    bounds = {b.resource: b for b in time_bounds(tile, "H100 SXM")}
    assert bounds["memory"].seconds == pytest.approx(8192 / 3.35e12)
    assert bounds["threadgroup memory"].seconds == pytest.approx((32 + 32 * 32) / beats)
    assert (bounds["threadgroup memory"].why, bounds["threadgroup memory"].line) == ("32-way conflicts", 8)
    assert bounds["arithmetic"].seconds == pytest.approx(1024 / 2 / (128 * beats))
    lasting = [b.seconds for b in bounds.values()]
    assert lasting == sorted(lasting, reverse=True)


def test_an_estimate_is_labeled_and_states_unpublished_figures(tile: Profile) -> None:
    said = describe_estimate(tile, "M1 Ultra")
    assert said == (
        "on an M1 Ultra, estimate: at least 815 ns for threadgroup memory (32-way conflicts, line 8), 49.4 ns for "
        "loads and stores, 10.2 ns for memory; memory is busy at most 1.3 % of the time; 1 threadgroup for 64 "
        "processors leaves 63 idle; some of its figures are not public"
    )


def test_more_threadgroups_than_processors_leave_none_idle(tile: Profile) -> None:
    said = describe_estimate(replace(tile, groups=64), "M1 Ultra")
    assert "12.7 ns for threadgroup memory" in said  # 64 processors share the counted passes
    assert "idle" not in said


def test_lines_of_memory_are_named_where_fewer_would_do(transpose: Profile) -> None:
    assert "(32 cache lines per access)" in describe_estimate(transpose, "M2")
    text = """kernel void f(device const float4* x, device float* out, uint i [[thread_position_in_grid]]) {
        float4 v = x[i];
        out[i] = v.x + v.y + v.z + v.w;
    }"""
    profile = profiled(text, np.zeros((4096, 4), np.float32), np.zeros(4096, np.float32))
    assert "cache lines per access" not in describe_estimate(profile, "M2")  # four, for 512 bytes


def test_unknown_device_error_lists_the_devices(tile: Profile) -> None:
    with pytest.raises(mnb.ArgumentError, match=r"no figures for the device 'M9'. The known devices are M1, M1 Pro"):
        time_bounds(tile, "M9")


def test_every_figure_has_a_source() -> None:
    for device in DEVICES.values():
        for name in device.__slots__:
            figure = getattr(device, name)
            if name not in {"name", "fixed"}:
                assert figure.value > 0 or name == "reserved"
                assert figure.source
                assert not (figure.public and "measured" in figure.source.split(";")[0]), (device.name, name)


@pytest.mark.parametrize(("device", "limit", "groups"), [("T4", "threads", 1), ("H100 SXM", "threads", 2)])
def test_how_many_threadgroups_fit_a_processor(tile: Profile, device: str, limit: str, groups: int) -> None:
    full = occupancy(tile, device)
    assert full is not None
    assert (full.groups, full.limit, full.share) == (groups, limit, 1.0)


def test_threadgroup_memory_limits_occupancy() -> None:
    text = """kernel void f(device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[8000];
        t[l * 13 % 8000] = l;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[l];
    }"""
    profile = profiled(text, grid=64, threadgroup=64)
    full = occupancy(profile, "RTX 4090")
    assert full is not None
    assert (full.groups, full.limit) == (3, "threadgroup memory")
    full = occupancy(replace(profile, threadgroup_bytes=100 << 8), "RTX 4090")
    assert full is not None
    assert full.groups == 3  # four would fit without the system's 1,024 bytes for each
    assert occupancy(profile, "M3") is None  # reserves nothing
