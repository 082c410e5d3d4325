"""Cells that use one feature of the language each: its name, the cell, and what it writes."""

# Name, source, what the kernel writes to y.
ROWS = (
    # Types and literals (MSL 2.1)
    ("an unsuffixed literal is float", """
{ y[0] = sizeof(1.0); y[1] = sizeof(1.0h); y[2] = sizeof(16.h); y[3] = sizeof(1.f); y[4] = sizeof(1e3); }
""", [4, 2, 2, 4, 4]),
    ("integer literals", """
{ y[0] = sizeof(1u); y[1] = sizeof(1l); y[2] = sizeof(1ul); y[3] = 0x1'00u; y[4] = 0b101; y[5] = 1'000; }
""", [4, 8, 8, 256, 5, 1000]),
    ("hexadecimal and short floats", """
{ y[0] = 0x1.8p1; y[1] = .5; y[2] = 5.; y[3] = 1.5e-1f; y[4] = 0.5h; }
""", [3, 0.5, 5, 0.15, 0.5]),
    ("sizes of the scalars", """
{ y[0] = sizeof(bool); y[1] = sizeof(char); y[2] = sizeof(short); y[3] = sizeof(int); y[4] = sizeof(long);
    y[5] = sizeof(half); y[6] = sizeof(size_t); y[7] = sizeof(ptrdiff_t); y[8] = sizeof(uint8_t);
    y[9] = sizeof(int64_t); }
""", [1, 1, 2, 4, 8, 2, 8, 8, 1, 8]),
    ("sizes of the vectors", """
{ y[0] = sizeof(float3); y[1] = sizeof(packed_float3); y[2] = alignof(float4); y[3] = alignof(packed_float4);
    y[4] = sizeof(half3); y[5] = sizeof(bool2); y[6] = sizeof(float4x4); y[7] = sizeof(float3x3);
    y[8] = sizeof(half2x3); }
""", [16, 12, 16, 4, 8, 2, 64, 48, 16]),
    ("enumerations", """
enum class E : uchar { A = 3, B }; enum F { X = 7 };
{ E e = E::B; y[0] = uint(e); y[1] = X; y[2] = sizeof(E); y[3] = e == E::B; }
""", [4, 7, 1, 1]),
    ("unions", """
union U { float f; uint u; uchar b[4]; };
{ U u; u.f = 1; y[0] = u.u == 0x3f800000; y[1] = u.b[3]; }
""", [1, 63]),
    ("bit-fields", """
struct P { uint id : 24; uint kind : 8; int s : 5; uint : 3; uint e : 1; };
{ P p{0x123456u, 250, 0, 1}; p.kind += 8; p.s = -3; p.s -= 1; P q = p; q.e ^= 1;
    y[0] = p.id == 0x123456; y[1] = p.kind; y[2] = q.s; y[3] = sizeof(P); y[4] = p.e + 2 * q.e; }
""", [1, 2, -4, 8, 1]),
    ("type aliases", """
typedef float4 quad; using real = float; template <class T> using pair = vec<T, 2>;
{ quad q = quad(1, 2, 3, 4); pair<real> p = q.zw; y[0] = p.x + p.y; }
""", [7]),
    ("as_type", """
{ y[0] = as_type<float>(0x40000000u); y[1] = as_type<uint>(1.0f) == 0x3f800000u;
    y[2] = as_type<half2>(0x40003c00u).y; }
""", [2, 1, 2]),
    ("static_assert", """
static_assert(sizeof(float3) == 16, "a float3 is padded"); static_assert(true);
{ static_assert(1 < 2); y[0] = 1; }
""", [1]),
    # Declarations
    ("auto and decltype", """
{ auto a = 1.5; decltype(a) b = a; auto v = float4(1, 2, 3, 4).wz; decltype(v) w = v; const auto& c = y[i];
    thread auto& d = b; d += 1; y[0] = a + b + w.x + (c < 0); }
""", [9]),
    ("constexpr", """
constexpr int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
{ constexpr int n = fib(7); float t[n]; t[n - 1] = 3; y[0] = n; y[1] = t[12]; }
""", [13, 3]),
    ("default arguments", """
float f(float a, float b = 2, float c = 3) { return a + b * c; }
{ y[0] = f(1); y[1] = f(1, 1); }
""", [7, 4]),
    ("references to arrays", """
void fill(thread float (&a)[3], float x) { for (thread float& e : a) e = x; }
    template <class T, int N> int count(thread T (&)[N]) { return N; }
{ float a[3]; fill(a, 2); y[0] = a[0] + a[2]; y[1] = count(a); }
""", [4, 3]),
    ("range for and structured bindings", """
struct P { float a, b; };
{ float s = 0; float t[] = {1, 2, 3}; for (float x : t) s += x; P p = {4, 5}; auto [u, v] = p; y[0] = s + u * v; }
""", [26]),
    ("if and switch with an initializer", """
{ if (int a = 3; a > 2) y[0] = a; switch (int b = 2; b) { case 2: y[1] = 5; break; default: y[1] = 0; } }
""", [3, 5]),
    ("structs in functions", """
{ struct L { float a; float twice() const { return 2 * a; } }; L l = {4}; y[0] = l.twice(); }
""", [8]),
    ("member initializers and delegating constructors", """
struct S { float a = 2; float b; S() : S(5) { } S(float x) : b(x) { } };
{ S s; y[0] = s.a; y[1] = s.b; }
""", [2, 5]),
    ("inheritance", """
struct A { float a; float get() const { return a; } }; struct B : A { float b; };
{ B b; b.a = 3; y[0] = b.get(); }
""", [3]),
    ("nested namespaces", """
namespace a::b { constant float c = 4; float f() { return c; } } namespace d = a::b;
{ y[0] = d::f(); }
""", [4]),
    # Operators
    ("user-defined operators", """
struct C { float r, i; C operator*(C o) const { return {r * o.r - i * o.i, r * o.i + i * o.r}; }
    bool operator==(C o) const { return r == o.r; } float operator()(int k) const { return k ? i : r; }
    float operator[](int k) const { return k ? i : r; } };
C operator+(C a, C b) { return {a.r + b.r, a.i + b.i}; } C operator-(C a) { return {-a.r, -a.i}; }
{ C a = {1, 2}, b = a * a + -a; y[0] = b(0); y[1] = b[1]; y[2] = a == C{1, 0}; }
""", [-4, 2, 1]),
    ("compound operators", """
struct V { float x; thread V& operator+=(V o) { x += o.x; return *this; } thread V& operator++() { ++x;
    return *this; } };
{ V a = {1}; (a += V{2}) += V{3}; ++a; y[0] = a.x; }
""", [7]),
    ("conversions", """
struct W { float a; operator float() const { return a; } explicit operator bool() const { return a > 1; } };
{ W w = {2.5}; float f = w; y[0] = f + 1; if (w) y[1] = 1; }
""", [3.5, 1]),
    # Lambdas
    ("lambdas", """
{ float k = 3; auto f = [k](float x) { return k * x; }; auto g = [&](float x) { k += x; }; g(1); y[0] = f(2);
    y[1] = k; y[2] = [](int a, int b) { return a - b; }(7, 2); }
""", [6, 4, 5]),
    ("generic lambdas", """
{ auto add = [](auto a, auto b) { return a + b; }; y[0] = add(1, 2.5); y[1] = add(float2(1, 2), float2(3, 4)).y;
    auto set = [](thread auto& x, float v) { x = v; }; float z; set(z, 9); y[2] = z; }
""", [3.5, 6, 9]),
    ("a lambda as an argument", """
template <class F> float apply(F f, float x) { return f(f(x)); }
{ y[0] = apply([](float x) { return x * x; }, 3); }
""", [81]),
    # Templates
    ("defaulted and non-type parameters", """
template <class T = float, int N = 3, bool up = true> T power(T x) { T r = 1; for (int k = 0; k < N;
    k++) r *= up ? x : 1 / x; return r; }
{ y[0] = power(2.0); y[1] = power<float, 2>(3); y[2] = power<float, 1, false>(4); }
""", [8, 9, 0.25]),
    ("function-pointer parameters", """
struct B { uchar n; }; void twice(device const B* b, thread float& x) { x = 2 * b->n; }
    void plus(device const B* b, thread float& x) { x = b->n + 1; }
template <void (*deq)(device const B*, thread float&)> float get(device const B* b) { float x; deq(b, x);
    return x; }
{ device B* b = (device B*)(y + 4); b->n = 5; y[0] = get<twice>(b); y[1] = get<plus>(b); y[4] = 0; }
""", [10, 6, -1, -1, 0]),
    ("function templates for function-pointer parameters", """
template <class M> void wide(device const float* b, int k, thread M& m) { m = M(b[0] + k); }
template <class M> void narrow(device const uchar* b, int k, thread M& m) { M t = M(b[0]); m = t * k; }
template <class B, int n, void (*load)(device const B*, int, thread float2x2&)> float total(device const float* b) {
    float2x2 m; load((device const B*)b, n, m); return m[0][0] + m[1][1]; }
{ y[0] = 1; y[1] = total<float, 2, wide>(y); ((device uchar*)y)[0] = 3; y[2] = total<uchar, 2, narrow>(y);
    y[3] = total<float, 5, wide<float2x2>>(y + 1); y[0] = 0; }
""", [0, 6, 12, 22]),
    ("variadic templates", """
template <class... T> float sum(T... x) { return (0.0 + ... + x); } template <class... T> int count(T...) {
    return sizeof...(T); }
{ y[0] = sum(1, 2.5, 3u); y[1] = count(1, 2); }
""", [6.5, 2]),
    ("if constexpr", """
template <class T> float bits(T x) { if constexpr (is_floating_point_v<T>) return x * 2;
    else return sizeof(T) * 8; }
{ y[0] = bits(1.5); y[1] = bits(short(1)); }
""", [3, 16]),
    ("specializations", """
template <class T> struct name { static constexpr constant int id = 0; }; template <> struct name<half> {
    static constexpr constant int id = 1; }; template <class T, int N> struct name<vec<T, N>> {
    static constexpr constant int id = N; };
{ y[0] = name<int>::id; y[1] = name<half>::id; y[2] = name<float4>::id; }
""", [0, 1, 4]),
    ("nested templates and templates as parameters", """
template <class T> struct Box { T v; template <class U> U as() const { return U(v); } };
    template <template <class> class C, class T> C<T> make(T x) { return {x}; }
template <class T> float f(T x) { return make<Box>(x).template as<float>(); }
{ y[0] = f(3); y[1] = Box<Box<int>>{{4}}.v.v; }
""", [3, 4]),
    ("enable_if", """
template <class T, typename = metal::enable_if_t<metal::is_integral_v<T>>> int f(T) { return 1; }
template <class T, typename metal::enable_if<!metal::is_integral<T>::value, bool>::type = true> int f(T) {
    return 2; }
{ y[0] = f(1); y[1] = f(1.0); }
""", [1, 2]),
    ("variable templates", """
template <class T> constant constexpr T pi = T(3.5);
{ y[0] = pi<float>; y[1] = pi<int>; }
""", [3.5, 3]),
    ("dependent vector constructors", """
template <class T, class T4> T f(T a) { T4 v = T4(a, a, 2, 3); v.xy += v.zw; return v.x + v.y; }
{ y[0] = f<float, float4>(1); y[1] = f<int, int4>(2); }
""", [7, 9]),
    ("swizzles of a dependent vector", """
template <class V> void f(thread V& v, V w) { v.xy += w.zw; v.x *= 2; v.xy = v.xy * w.x + v.yx; v.zw -= 1; }
template <class V> void g(thread V& v, V w) { v.xy |= w.zw & 6; v.xy = v.xy | w.xy; }
{ float4 v = 1; f(v, float4(2, 2, 3, 4)); y[0] = v.x; y[1] = v.y; y[2] = v.z; uint4 u = 1;
    g(u, uint4(8, 16, 3, 4)); y[3] = u.x; y[4] = u.y; }
""", [21, 18, 0, 11, 21]),
    # Deduction from thread memory: variables, members, what a pointer points at
    ("a thread reference beside a value", """
template <class T> void set(thread T& a, T b) { a = b; } template <class T> T add(T a, thread const T* b) {
    T c = a + *b; return c; }
struct S { float m; void go() { set(m, 4.0); m = add(m, &m); } };
{ float x; set(x, 3.0); y[0] = add(x, &x); S s; s.go(); y[1] = s.m; thread float* p = &x; set(*p, 5.0); y[2] = x;
    float4 v; set(v, float4(7)); y[3] = v.w; }
""", [6, 8, 5, 7]),
    ("two thread references", """
template <class T> void exchange(thread T& a, thread T& b) { T c = a; a = b; b = c; } struct S { float m; };
{ float a = 1, b[2] = {2, 3}; S s = {4}; thread float* p = b; exchange(a, s.m); exchange(b[0], p[1]);
    exchange(p[0], a); y[0] = a; y[1] = s.m; y[2] = b[0]; y[3] = b[1]; }
""", [3, 1, 4, 2]),
    ("a thread array beside a buffer", """
template <class T, int N> void load(device const T* from, thread T (&to)[N]) { for (int k = 0; k < N;
    k++) to[k] = from[k] + 1; }
{ for (int k = 0; k < 3; k++) y[k] = k; float t[3]; load(y, t); for (int k = 0; k < 3; k++) y[k] = t[k] * 2; }
""", [2, 4, 6]),
    ("a thread array as a pointer, beside a value", """
template <class T> void fill(thread T to[3], T x) { for (int k = 0; k < 3; k++) to[k] = x + k; }
{ float t[3]; fill(t, 2.0f); for (int k = 0; k < 3; k++) y[k] = t[k]; }
""", [2, 3, 4]),
    ("a default argument tells no type", """
template <class T> T sum(thread const T* x, int n, T start = T(1)) { for (int k = 0; k < n; k++) start += x[k];
    return start; }
{ float t[2] = {2, 3}; y[0] = sum(t, 2); y[1] = sum(t, 2, 10.0); }
""", [6, 15]),
    ("a thread vector beside its components", """
template <class T, int N> void put(thread vec<T, N>& v, T x) { v[N - 1] = x; }
    template <class T> T first(const thread vec<T, 4>& v) { T t = v.x; return t; }
{ float4 v = 1; put(v, 9.0); y[0] = v.w + first(v); }
""", [10]),
    ("an operator template on thread references", """
struct A { float v; }; template <class T> thread A& operator<<(thread A& a, T x) { a.v = a.v * 10 + x; return a; }
    struct L { template <class T> bool operator()(thread const T& a, thread const T& b) const { return a < b; } };
{ A a = {1}; a << 2 << 3.0; y[0] = a.v; float p = 1, q = 2; L l; y[1] = l(p, q); y[2] = l(q, p); }
""", [123, 1, 0]),
    # Preprocessor
    ("macros", """
#define SQUARE(x) ((x) * (x))
#define CAT(a, b) a##b
#define STR(x) #x
#define SUM(first, ...) (first + __VA_ARGS__)
{ float CAT(va, lue) = SQUARE(3); y[0] = value; y[1] = sizeof(STR(abc)); y[2] = SUM(1, 2 + 3); }
""", [9, 4, 6]),
    ("a macro that the library has too", """
#define M_PI 3.0
#define MAX_N 4
{ y[0] = M_PI; y[1] = MAX_N; }
""", [3, 4]),
    ("conditions on the compiler", """
#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 230
#define V 1
#else
#error not Metal
#endif
#ifdef __METAL__
#define W 2
#endif
#ifdef NOBODY
std::vector<double> hidden; [[bogus]]
#endif
{ y[0] = V; y[1] = W; }
""", [1, 2]),
    ("loop pragmas", """
#define UNROLL _Pragma("clang loop unroll(full)")
{
    float s = 0;
    #pragma unroll
    for (int k = 0; k < 4; k++) s += k;
    #pragma unroll(2)
    for (int k = 0; k < 4; k++) s += k;
    #pragma clang loop unroll(full)
    for (int k = 0; k < 4; k++) s += k;
    UNROLL
    for (int k = 0; k < 4; k++) s += k;
    #pragma clang loop unroll_count(4)
    do s += 1; while (s < 30);
    y[0] = s;
}
""", [30]),
    ("comments and continued lines", r"""
/* double */ // throw \
   new
{ y[0] = 1; /* a
 b */ y[1] \
 = 2; }
""", [1, 2]),
)  # fmt: skip

SPACES = (
    ("one name for each space", """
int f(device const float*) { return 1; } int f(constant float*) { return 2; } int f(threadgroup const float*) {
    return 3; } int f(thread const float*) { return 4; }
constant float t[1] = {0};
{ threadgroup float g[1]; float p[1]; g[0] = p[0] = 0; y[i] = f(y) * 1000 + f(t) * 100 + f(g) * 10 + f(p); }
""", 1234),
    ("members for each space", """
struct S { float a; float f() const device { return a + 1; } float f() const constant { return a + 1; }
    float f() const threadgroup { return a + 3; } float f() const thread { return a + 4; } };
constant S c = {0};
{ threadgroup S g; S p = {0}; g.a = 0; device S* d = (device S*)y; d->a = 0;
    y[i] = d->f() * 1000 + c.f() * 100 + g.f() * 10 + p.f(); }
""", 1134),
    ("conversions for each space", """
struct S { uchar n; operator float() const device { return n + 1; } operator float() const threadgroup {
    return n + 3; } operator float() const thread { return n + 4; } };
{ threadgroup S g; S p = {0}; g.n = 0; device S* d = (device S*)y; d->n = 0; float a = *d, b = g, c = p;
    y[i] = a * 100 + b * 10 + c; }
""", 134),
    ("members for constant objects and others", """
struct S { float a; float f() const constant { return a + 1; } float f() const { return a + 2; }
    float g(int k) const constant { return a + k; } operator float() const constant { return a + 5; } };
constant S c = {0};
{ S p = {0}; float d = c; y[i] = c.f() * 1000 + p.f() * 100 + c.g(3) * 10 + d; }
""", 1235),
    ("const on either side", """
float f(const device float* a, device const float* b, const thread float& c, thread const float& d,
    float const thread* e) {
    return a[0] + b[0] + c + d + *e; }
{ float p = 2; y[0] = 1; y[i] = f(y, y, p, p, &p); }
""", 8),
    ("pointers to pointers, arrays of pointers", """
{ float a = 3; thread float* p = &a; thread float* thread* pp = &p; device float* q[2] = {y, y}; **pp = 4;
    y[0] = 5; y[i] = a + q[1][0]; }
""", 9),
    ("members that point into each space", """
struct V { device float* d; threadgroup float* g; thread float* p; constant float* c; float sum() const {
    return *d + *g + *p + *c; } }; constant float one = 1;
{ threadgroup float g; g = 2; float p = 3; y[0] = 4; V v = {y, &g, &p, &one}; y[i] = v.sum(); }
""", 10),
    ("copies between all spaces", """
struct S { float a; float4 v; };
constant S c = {1, float4(2)};
{ threadgroup S g[2]; S p = c; g[0] = p; g[1] = c; p = g[1]; S q = g[0]; q.v.x += p.a; g[0] = q;
    y[i] = g[0].v.x + g[1].v.w + sizeof(S) / 16; }
""", 7),
    ("tables of structs and vectors at program scope", """
struct P { float2 at; half w; int n[2]; };
constant P table[] = {{float2(1, 2), 3.0h, {4, 5}}, {{6, 7}, 8.0h, {9, 10}}};
constant float4 axis[2] = {float4(1), {1, 2, 3, 4}}; static constant constexpr ushort mask[3] = {1, 2, 4};
    constant float2x2 m = float2x2(1, 2, 3, 4);
{ constant P& p = table[1]; y[i] = p.at.y + table[0].w + p.n[1] + axis[1].w + mask[2] + m[1][0]; }
""", 31),
    ("returned pointers and references", """
device float* at(device float* p, int k) { return p + k; } thread float& first(thread float2& v) {
    return *(thread float*)&v; }
{ float2 v = 0; first(v) = 6; *at(y, 0) = 1; y[i] = v.x + *at(y, 0); }
""", 7),
)  # fmt: skip

THREADGROUP = (
    ("two dimensions", """
{ threadgroup float t[4][8]; t[i / 8][i % 8] = i; BARRIER y[i] = t[(31 - i) / 8][(31 - i) % 8]; }
"""),
    ("structs in three dimensions", """
struct S { float a; packed_float3 b; };
{ threadgroup S t[2][4][4]; t[i / 16][i / 4 % 4][i % 4].b = float3(0, i, 0); BARRIER uint j = 31 - i;
    y[i] = t[j / 16][j / 4 % 4][j % 4].b.y; }
"""),
    ("a declaration in a block", "{ if (sizeof(int)) { threadgroup int t[32]; t[i] = i; BARRIER y[i] = t[31 - i]; } }"),
    ("several in one declaration", """
{ threadgroup float a[32], b[32], c; a[i] = i; if (i == 0) c = 1; BARRIER b[i] = a[31 - i];
    BARRIER y[i] = b[i] * c; }
"""),
    ("in a loop", """
{ for (int k = 0; k < 3; k++) { threadgroup float t[32]; t[i] = i; BARRIER y[i] = t[31 - i]; BARRIER } }
"""),
    ("of a type that a macro names", """
#define T half
#define SHARED threadgroup
{ SHARED T t[32]; t[i] = i; BARRIER y[i] = t[31 - i]; }
"""),
    ("passed to functions", """
template <int N> void put(threadgroup float (&t)[N], uint i) { t[i] = i; }
    float get(const threadgroup float* t, uint i) { return t[i]; }
{ threadgroup float t[32]; put(t, i); BARRIER y[i] = get(t, 31 - i); }
"""),
    ("as bytes for two types", """
{ threadgroup uchar raw[128]; threadgroup float* t = (threadgroup float*)raw; t[i] = i; BARRIER y[i] = t[31 - i]; }
"""),
)  # fmt: skip
