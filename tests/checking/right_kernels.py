"""Kernels without a bug, in which a careless validation would find one."""

from checking.planted_bugs import ACROSS, BARRIER, FENCE, MESSAGE

RIGHT = {
    "elementwise": "o[i] = x[i] * 2;",
    "guarded": "if (i + 1 < 128) o[i] = x[i + 1];",
    "in place": "x[i] = x[i] + 1;",
    "reduction": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        for (uint k = 32; k; k /= 2) {{ if (t < k) s[t] += s[t + k]; {BARRIER} }}
        if (t == 0) o[g] = s[0];""",
    "reduction by SIMD-groups": f"""threadgroup float s[2];
        float v = simd_sum(x[i]);
        if (t % 32 == 0) s[t / 32] = v;
        {BARRIER}
        if (t == 0) o[g] = s[0] + s[1];""",
    "exchange in a SIMD-group": """threadgroup float s[64];
        s[t] = x[i];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        float there = s[t ^ 1];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        s[t] = there; o[i] = s[t];""",
    "atomics": "atomic_fetch_add_explicit(n + i % 4, 1u, memory_order_relaxed); o[i] = 1;",
    "atomics set by an exchange": f"""threadgroup atomic_uint c[64];
        atomic_exchange_explicit(c + t, 0u, memory_order_relaxed);
        {BARRIER}
        o[i] = atomic_fetch_add_explicit(c + t, 1u, memory_order_relaxed);""",
    "atomics in a threadgroup": f"""threadgroup atomic_uint c;
        if (t == 0) atomic_store_explicit(&c, 0u, memory_order_relaxed);
        {BARRIER}
        atomic_fetch_add_explicit(&c, t, memory_order_relaxed);
        {BARRIER}
        o[i] = atomic_load_explicit(&c, memory_order_relaxed);""",
    "turned": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        o[i] = s[63 - t];
        {BARRIER}
        s[t] = o[i];""",
    "vectors and own arrays": """float4 v = ((device float4*)x)[i / 4]; float own[4];
        for (int k = 0; k < 4; ++k) own[k] = v[k];
        o[i] = own[i % 4];""",
    "infinities on purpose": "float m = -INFINITY; for (uint k = 0; k <= t; ++k) m = max(m, x[k]); o[i] = m;",
    "an infinity that was given back": "float big = exp(x[i]); o[i] = isinf(big) ? 1.0f : big / (1 + big);",
    "NaN told apart": "float v = x[i] / x[i]; o[i] = isnan(v) ? 0.0f : v;",
    "counted down": "float s = 0; for (uint k = t + 1; k-- > 0;) s += x[k]; o[i] = s;",
    "wrapped on purpose": "uint h = i * 2654435761u; h ^= h >> 15; h -= 0x9e3779b9u; o[i] = float(h & 127);",
    "index by an unsigned difference": "uint k = i - 1; o[i] = k < 128 ? x[k] : 0.0f;",
    "shifted by nearly all": "o[i] = float((1u << (t % 32)) >> (t % 32));",
    "divided": "int k = int(i) - 3; o[i] = k ? float(100 / k + 7 % k) : 0.0f;",
    "rotated": "o[i] = float(rotate(0x80000001u, t) & 1u);",
    "bits extracted": "o[i] = float(extract_bits(i, 0u, 32u) + insert_bits(0u, i, 31u, 1u) % 2);",
    "saturated": "o[i] = float(uchar(clamp(x[i] * 4, 0.0f, 255.0f)));",
    "packed and plain vectors": "device packed_float3* q = (device packed_float3*)x; o[i] = float3(q[i % 42]).y;",
    "bytes": "device uchar* b = (device uchar*)x; uint s = 0; for (int k = 0; k < 4; ++k) s += b[4 * i + k]; o[i] = s;",
    "structs": """struct Row { device float* at; float sum(uint k) const { return at[k] + at[(k + 1) % 128]; } };
        Row r{x}; o[i] = r.sum(i);""",
    "lambdas": "auto f = [=](uint k) { return x[k] * 2; }; o[i] = f(i) + f(127 - i);",
    "references": "device float& r = o[i]; r = 1; r += x[i];",
    "half": "half h = half(x[i]); h = h * 2 + 1; o[i] = float(h);",
    "matrices": "float2x2 m = float2x2(1, 2, 3, 4); float2 v = m * float2(x[i], 1); o[i] = v.x + determinant(m);",
    "scanned": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        for (uint k = 1; k < 64; k *= 2) {{
            float before = t >= k ? s[t - k] : 0;
            {BARRIER}
            s[t] += before;
            {BARRIER}
        }}
        o[i] = s[t];""",
    "prefix in a SIMD-group": "o[i] = simd_prefix_inclusive_sum(x[i]) + simd_prefix_exclusive_sum(1.0f);",
    "shuffled": "float v = x[i]; for (uint k = 16; k; k /= 2) v += simd_shuffle_xor(v, k); o[i] = v;",
    "reduced by shuffles down": "float v = x[i]; for (uint k = 16; k; k /= 2) v += simd_shuffle_down(v, k); o[i] = v;",
    "shuffled within what there is": """float v = x[i];
        if (t % 32 < 16) v += simd_shuffle_xor(v, 8) + simd_broadcast_first(v) + simd_product(min(v, 1.0f));
        if (t % 4 < 2) v += quad_shuffle_xor(v, 1) + quad_sum(v) + quad_shuffle(v, 1) + quad_max(v);
        v += simd_shuffle_up(v, 31) + simd_shuffle_and_fill_up(v, 2.0f, 7) + simd_shuffle_rotate_up(v, 9);
        v += quad_shuffle_down(v, 3) + quad_shuffle_rotate_down(v, 3) + simd_prefix_exclusive_product(min(v, 1.0f));
        o[i] = v;""",
    "voted": "o[i] = simd_any(t == 3) + simd_all(t < 64) + popcount((uint)(simd_vote::vote_t)simd_ballot(t % 2 == 0));",
    "a float added atomically": """device atomic_float* a = (device atomic_float*)o;
        atomic_fetch_add_explicit(a + i % 4, 1.0f, memory_order_relaxed);""",
    "compared and exchanged": """uint old = atomic_load_explicit(n, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(n, &old, old + i, memory_order_relaxed, memory_order_relaxed)) { }
        o[i] = 1;""",
    "largest atomically": "atomic_fetch_max_explicit(n, i, memory_order_relaxed); o[i] = 1;",
    "early end": "if (i >= 100) return; o[i] = simd_sum(x[i]);",
    "switched": "switch (t % 3) { case 0: o[i] = 1; break; case 1: o[i] = 2; break; default: o[i] = x[i]; }",
    "transposed in a tile": f"""threadgroup float tile[8][9];
        tile[t / 8][t % 8] = x[i];
        {BARRIER}
        o[i] = tile[t % 8][t / 8];""",
    "two buffers in turn": f"""threadgroup float s[2][64];
        s[0][t] = x[i];
        uint now = 0;
        for (uint k = 1; k < 64; k *= 2) {{
            {BARRIER}
            s[1 - now][t] = s[now][t] + (t >= k ? s[now][t - k] : 0);
            now = 1 - now;
        }}
        o[i] = s[now][t];""",
    "three halves": f"""threadgroup half3 one;
        half3 own = half3(2);
        if (t == 0) one = own;
        {BARRIER}
        half3 taken = one;
        o[i] = i % 2 ? x[i] : float(taken.x + taken.y + taken.z);""",
    "read in between": """o[i] = x[i];
        threadgroup_barrier(mem_flags::mem_device);
        float there = o[i ^ 1];
        threadgroup_barrier(mem_flags::mem_device);
        o[i ^ 1] = there * 2;""",
    "grid-stride": "for (uint k = i; k < 128; k += 128) o[k] = x[k] * 2;",
    "one thread for all": "if (i == 0) for (uint k = 0; k < 128; ++k) o[k] = x[k];",
    "a message within a threadgroup": MESSAGE.replace("FIRST", FENCE).replace("SECOND", FENCE),
    "a message to another threadgroup": ACROSS.replace("FENCE", FENCE),
    "a message behind barriers": f"""threadgroup uint last;
        o[i] = x[i];
        threadgroup_barrier(mem_flags::mem_device);
        if (t == 0) {{
            {FENCE}
            last = atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
            {FENCE}
        }}
        {BARRIER}
        if (last == 1) x[i] = o[127 - i % 128] + o[0];""",
    "messages handed on": f"""if (t == 0) {{
            if (g > 0) while (atomic_load_explicit(n + g - 1, memory_order_relaxed) == 0) {{ }}
            {FENCE}
            o[g] = x[g] + (g > 0 ? o[g - 1] : 0) + (g > 1 ? o[g - 2] : 0);
            {FENCE}
            atomic_store_explicit(n + g, 1u, memory_order_relaxed);
        }}""",
    "a lock that is spun on": f"""threadgroup atomic_uint lock;
        threadgroup uint sum;
        if (t == 0) {{ atomic_store_explicit(&lock, 0u, memory_order_relaxed); sum = 0; }}
        {BARRIER}
        if (t % 32 == 0) {{
            while (atomic_exchange_explicit(&lock, 1u, memory_order_relaxed) != 0) {{ }}
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
            sum += t;
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
            atomic_store_explicit(&lock, 0u, memory_order_relaxed);
        }}
        {BARRIER}
        o[i] = sum;""",
    "set in each branch": """int s; if (i > 3) s = 1; else s = 2;
        uint own[4]; for (uint k = 0; k < 4; ++k) own[k] = k;
        int q; switch (i % 3) { case 0: q = 1; break; default: q = 2; }
        bool any = false; for (uint k = 0; k < 4; ++k) any |= own[k] == 2;
        uint left; bool has = i > 7; if (has) left = 3; if (has) s += left;
        o[i] = s + int(own[i % 4]) + q + any;""",
    "set by a helper": """struct Two { uint a, b; };
        auto fill = [](thread uint& a, thread Two& two) { a = 1; two.a = 2; two.b = 3; };
        uint a; Two two; fill(a, two); Two other = two; o[i] = a + other.b;""",
    "divergent": "float s = 0; for (uint k = 0; k < t % 5; ++k) if (t % 3 == k) s += simd_sum(1.0f); o[i] = s;",
}
