// What benchmarks/lanes.py runs: kernels as people write them, each testing one strength or weakness of a vectorizer.
#include <metal_stdlib>
using namespace metal;
#define AT uint2 p [[thread_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]
#define I uint i [[thread_position_in_grid]]

// ---- Straight-line code.
kernel void saxpy(device const float* x, device const float* y, device float* o, constant float& a, I) {
    o[i] = a * x[i] + y[i];
}
kernel void gelu(device const float* x, device float* o, I) {
    float a = x[i];
    o[i] = 0.5f * a * (1 + tanh(0.79788456f * (a + 0.044715f * a * a * a)));
}
kernel void exp_sin(device const float* x, device const float* y, device float* o, I) { o[i] = exp(x[i]) * sin(y[i]); }
kernel void polynomial(device const float* x, device const float* y, device float* o, I) {
    float r = 0;
    for (int k = 0; k < 20; ++k) r = r * x[i] + y[i];
    o[i] = r;
}
kernel void float4s(device const float4* x, device float4* o, I) {
    float4 v = x[i];
    o[i] = v * dot(v, v) + v.wzyx;
}
kernel void halves(device const half* x, device half* o, I) {
    half a = x[i];
    o[i] = a * a + half(0.5) * a;
}
kernel void divisions(device const uint* x, device uint* o, constant uint& n, I) {
    uint a = x[i];
    o[i] = a / n + a % (x[i ^ 1] & 1023 | 1);
}
kernel void one(device float* o, I) { o[i] = 1; }

// ---- Loops that lanes leave in different iterations.
kernel void julia(device float* o, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    float2 z = float2(p) / float2(n) * 3 - 1.5;
    uint k = 0;
    for (; k < 100 && dot(z, z) < 4; ++k) z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + float2(-0.8, 0.156);
    o[p.y * n.x + p.x] = k;
}
kernel void mandelbrot(device uint* o, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    float cx = p.x * (3.0f / 512) - 2, cy = p.y * (2.0f / 256) - 1, x = 0, y = 0;
    uint k = 0;
    while (true) {
        float s = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = s;
        if (x * x + y * y > 4) break;
        if (++k == 256) break;
    }
    o[p.y * n.x + p.x] = k;
}
kernel void nested(device const uint* x, device uint* o, I) {
    uint a = x[i], s = 0;
    if (a % 7 == 0) return;
    for (uint j = 0; j < (a & 15); ++j) {
        if ((a >> j) & 1) continue;
        for (uint k = j;; ++k) {
            s += k * a;
            if (k * j > (a & 63)) break;
            if (k > 20) {
                o[i] = s;
                return;
            }
            if (s & 1) {
                s ^= j;
                continue;
            }
            s += 3;
        }
        if (s > 1000000000) break;
    }
    o[i] = s;
}

// ---- SIMD functions.
kernel void simd_sums(device const float* x, device float* o, I) {
    float s = simd_sum(x[i]);
    if (i % 32 == 0) o[i / 32] = s;
}
kernel void simd_in_branches(device const float* x, device float* o, I, uint l [[thread_index_in_simdgroup]]) {
    float s = x[i];
    if (l & 1) s = simd_sum(s);
    else if (l & 2) s = simd_max(s);
    o[i] = s + simd_shuffle_xor(s, 1) + simd_shuffle(s, (l * 7) & 31);
}
kernel void served_by_value(device const uint* x, device uint* o, I) {
    uint key = x[i] & 7, r = 0;
    while (true) {
        uint v = simd_broadcast_first(key);
        if (v == key) {
            r = simd_sum(x[i]) + v;
            break;
        }
    }
    o[i] = r;
}
kernel void prefix_sums(device const float* x, device float* o, I) { o[i] = simd_prefix_inclusive_sum(x[i]); }
kernel void shuffled_sums(device const float* x, device float* o, I) {
    float s = x[i];
    for (ushort d = 16; d; d /= 2) s += simd_shuffle_down(s, d);
    if (i % 32 == 0) o[i / 32] = s;
}

// ---- Barriers.
kernel void grid_stride_sum(device const float* x, device float* o, constant uint& n, I,
                            uint g [[threadgroup_position_in_grid]], uint m [[threads_per_grid]],
                            uint l [[thread_index_in_simdgroup]], uint w [[simdgroup_index_in_threadgroup]],
                            uint nw [[simdgroups_per_threadgroup]]) {
    threadgroup float part[32];
    float s = 0;
    for (uint k = i; k < n; k += m) s += x[k];
    s = simd_sum(s);
    if (l == 0) part[w] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (w == 0) {
        s = simd_sum(l < nw ? part[l] : 0);
        if (l == 0) o[g] = s;
    }
}
kernel void tree(device const float* x, device float* o, I) {
    threadgroup float part[256];
    uint t = i % 256;
    part[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 128; k; k /= 2) {
        if (t < k) part[t] += part[t + k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) o[i / 256] = part[0];
}
kernel void tree_by_place(device const float* x, device float* o, I, uint t [[thread_position_in_threadgroup]],
                          uint g [[threadgroup_position_in_grid]]) {
    threadgroup float part[256];
    part[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 128; k; k /= 2) {
        if (t < k) part[t] += part[t + k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) o[g] = part[0];
}
kernel void row_softmax(device const float* x, device float* o, constant uint& n,
                        uint g [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                        uint l [[thread_index_in_simdgroup]], uint w [[simdgroup_index_in_threadgroup]],
                        uint m [[threads_per_threadgroup]], uint nw [[simdgroups_per_threadgroup]]) {
    threadgroup float part[32];
    device const float* r = x + g * n;
    device float* q = o + g * n;
    float a = -INFINITY;
    for (uint k = t; k < n; k += m) a = max(a, r[k]);
    a = simd_max(a);
    if (l == 0) part[w] = a;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    a = simd_max(l < nw ? part[l] : -INFINITY);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float s = 0;
    for (uint k = t; k < n; k += m) {
        float e = exp(r[k] - a);
        q[k] = e;
        s += e;
    }
    s = simd_sum(s);
    if (l == 0) part[w] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s = simd_sum(l < nw ? part[l] : 0);
    for (uint k = t; k < n; k += m) q[k] /= s;
}
kernel void barriers(device float* o, I, uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    float a = t;
    for (int k = 0; k < 200; ++k) {
        s[t] = a;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        a = 0.5f * a + s[t ^ 64];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    o[i] = a;
}
kernel void many_threadgroups(device float* o, I, uint t [[thread_index_in_threadgroup]]) {
    threadgroup float s[256];
    s[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[i] = s[t ^ 64];
}
kernel void transpose(device const float* x, device float* o, constant uint& n,
                      uint2 g [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float s[32][33];
    for (uint r = 0; r < 32; r += 8) s[t.y + r][t.x] = x[(g.y * 32 + t.y + r) * n + g.x * 32 + t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = 0; r < 32; r += 8) o[(g.x * 32 + t.y + r) * n + g.y * 32 + t.x] = s[t.x][t.y + r];
}

// ---- Matrix products.
kernel void product(device const float* a, device const float* b, device float* c, constant uint& n, AT) {
    float s = 0;
    for (uint k = 0; k < n; ++k) s += a[p.y * n + k] * b[k * n + p.x];
    c[p.y * n + p.x] = s;
}
kernel void tiled_16(device const float* a, device const float* b, device float* c, constant uint& n, AT) {
    threadgroup float ta[16][16], tb[16][16];
    float s = 0;
    for (uint k = 0; k < n; k += 16) {
        ta[t.y][t.x] = a[p.y * n + k + t.x];
        tb[t.y][t.x] = b[(k + t.y) * n + p.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < 16; ++j) s += ta[t.y][j] * tb[j][t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    c[p.y * n + p.x] = s;
}
kernel void tiled_32(device const float* a, device const float* b, device float* c, constant uint& n,
                     uint2 g [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float ta[32][32], tb[32][32];
    float s[4] = {0};
    uint x = g.x * 32 + t.x, y0 = g.y * 32;
    for (uint k = 0; k < n; k += 32) {
        for (uint r = 0; r < 4; ++r) {
            ta[t.y + 8 * r][t.x] = a[(y0 + t.y + 8 * r) * n + k + t.x];
            tb[t.y + 8 * r][t.x] = b[(k + t.y + 8 * r) * n + x];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < 32; ++j)
            for (uint r = 0; r < 4; ++r) s[r] += ta[t.y + 8 * r][j] * tb[j][t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint r = 0; r < 4; ++r) c[(y0 + t.y + 8 * r) * n + x] = s[r];
}

// ---- Memory: gathers, atomics, thread-private arrays, neighbors.
kernel void gather(device const float* x, device const uint* idx, device float* o, I) { o[i] = x[idx[i]]; }
kernel void histogram(device const uint* x, device atomic_uint* o, I) {
    atomic_fetch_add_explicit(&o[x[i] & 255], 1u, memory_order_relaxed);
}
kernel void histogram_in_threadgroups(device const uint* x, device atomic_uint* o, constant uint& n, I,
                                      uint m [[threads_per_grid]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint h[256];
    atomic_store_explicit(&h[t], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = i; k < n; k += m) atomic_fetch_add_explicit(&h[x[k] & 255], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&o[t], atomic_load_explicit(&h[t], memory_order_relaxed), memory_order_relaxed);
}
kernel void count(device const float* x, device atomic_uint* o, I) {
    if (x[i] > 0.5f) atomic_fetch_add_explicit(o, 1u, memory_order_relaxed);
}
kernel void own_array(device const int* x, device int* o, I) {
    int own[8];
    for (int k = 0; k < 8; ++k) own[k] = x[i] * k;
    for (int k = 0; k < 8; ++k) own[(k * 3 + x[i]) & 7] += k;
    o[i] = own[x[i] & 7];
}
kernel void n_body(device const float4* x, device float4* o, constant uint& n, I) {
    float3 a = 0, q = x[i].xyz;
    for (uint k = 0; k < n; ++k) {
        float3 d = x[k].xyz - q;
        float r = rsqrt(dot(d, d) + 0.01f);
        a += d * (r * r * r * x[k].w);
    }
    o[i] = float4(a, 0);
}
kernel void blur(device const float* x, device float* o, constant uint& w, constant uint& h,
                 uint2 p [[thread_position_in_grid]]) {
    float s = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            int a = clamp(int(p.x) + dx, 0, int(w) - 1), b = clamp(int(p.y) + dy, 0, int(h) - 1);
            s += x[b * w + a];
        }
    o[p.y * w + p.x] = s / 25;
}
kernel void stencil(device const float* x, device float* o, constant uint& w, constant uint& h,
                    uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x >= w - 1 || p.y >= h - 1) return;
    uint k = p.y * w + p.x;
    o[k] = 0.25f * (x[k - 1] + x[k + 1] + x[k - w] + x[k + w]);
}
