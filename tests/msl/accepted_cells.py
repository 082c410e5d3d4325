"""Cells that are accepted, though each resembles one that is refused."""

# Name, source. All of these are Metal.
ACCEPTED = (
    ("thread on either side of the type", """
float f(thread float* p, const thread float& q, thread const float& r, float thread* s) { return *p+q+r+*s; }
{ float a=1; y[i]=f(&a,a,a,&a); }
"""),
    ("a space inside a typedef", """
typedef thread float* fp; using dp = device float*;
float f(fp p) { return *p; }
{ float a=1; fp p=&a; dp d = y; d[i]=f(p); }
"""),
    ("auto", """
{ auto p = y; auto* q = y; auto& r = y[i]; const auto& s = y[i]; float a; auto z=&a; r = s + *z;  }
"""),
    ("decltype", """
{ float a = 1; thread decltype(a)& b = a; thread decltype(a)& c = a; y[i]=b+c; }
"""),
    ("what a template deduces", """
template <class T> void g(T& x) { x = 1; } template <class P> void h(P p) { *p = 2; } template <class T> T
    m(const thread T& a) { return a; }
{ g(y[i]); h(y); float a; g(a); h(&a); m(a); }
"""),
    ("range for", """
{ float t[3] = {1,2,3}; for (auto v : t) y[i] += v; for (thread auto& v : t) v = 0; for (auto& v : t) v=1; }
"""),
    ("lambda", """
{ float acc=0; auto f=[&](float x) { acc += x; return [=](thread float& u) { u += x; }; }; auto g = f(1);
    g(acc); auto h=[](auto a, thread auto& b) { b += a; }; h(1, acc); y[i]=acc; }
"""),
    ("array ref", """
void f(thread float (&a)[4]) { a[0]=1; } template <int N> void g(threadgroup float (&a)[N]) { a[0]=1; }
{ float a[4]; f(a); threadgroup float t[4]; g(t); threadgroup float (&r)[4] = t; threadgroup float* p = t;
    p[i]=r[0]; y[i]=a[0]; }
"""),
    ("struct members", """
struct S { device float* p; thread float* q; constant float& c; threadgroup float* t; float get(int i) const {
    return p[i]; } };
{ }
"""),
    ("constexpr recursion", """
constexpr int lg(int n) { return n < 2 ? 0 : 1 + lg(n / 2); }
{ float t[lg(16)]; t[0]=1; y[i]=t[0]; }
"""),
    ("a call that is never evaluated", """
struct S { S(int a); int v; }; float f(int a);
{ decltype(S(1).v) a = 1; decltype(f(2)) b = a; y[i] = b + sizeof(S(1)) + sizeof f(i); }
"""),
    ("constructors with bodies elsewhere", """
struct A { A(int a); int v; }; A::A(int a) : v(a) {} struct B : A { using A::A; }; struct C { C(); int v; };
    C::C() = default; template <class T> struct D { D(T a); T v; }; template <class T> D<T>::D(T a) : v(a) {}
    struct E { B b; D<int> d; };
{ A a(1); B b(2); C c; D<float> d(1); E e{b, 1}, g = e; y[i] = a.v + b.v + c.v + d.v + g.b.v + A(a).v; }
"""),
    ("constexpr recursion by a macro", """
#define FOLDED(type) constexpr type
FOLDED(int) lg(int n) { return n < 2 ? 0 : 1 + lg(n / 2); }
{ float t[lg(16)]; t[0]=1; y[i]=t[0]; }
"""),
    ("template recursion", """
template <int N> float f(float x) { return x * f<N-1>(x); } template <> float f<0>(float x) { return 1; }
{ y[i]=f<3>(2); }
"""),
    ("variadic recursion", """
float sum() { return 0; } template <class T, class... R> T sum(T x, R... r) { return x + sum(r...); }
{ y[i]=sum(1.f,2.f,3.f); }
"""),
    ("if constexpr recursion", """
template <class T, class... R> T sum(T x, R... r) { if constexpr (sizeof...(R) > 0) return x + sum(r...); else
    return x; }
{ y[i]=sum(1.f,2.f,3.f); }
"""),
    ("overload", """
float f(float x) { return x; } float f(float2 x) { return f(x.x) + f(x.y); }
{ y[i]=f(float2(1,2)); }
"""),
    ("methods same name", """
struct A { float f(float x) const { return x; } }; struct B { A a; float f(float x) const { return a.f(x); } };
{ B b; y[i]=b.f(1); }
"""),
    ("space overloads", """
float f(device const float* p) { return p[0]; } float f(constant float* p) { return p[1]; } float f(thread const
    float* p) { return p[2]; } float f(threadgroup const float* p) { return p[0]; }
kernel void k(device const float* a, constant float* b, device float* y, uint i [[thread_position_in_grid]]) {
    threadgroup float t[1]; float c[3]={1,2,3}; t[0]=1; y[i]=f(a)+f(b)+f(c)+f(t); }
"""),
    ("space methods", """
struct S { float a; float get() const device { return a; } float get() const constant { return a; } float get()
    const thread { return a; } float get() const threadgroup { return a; } };
kernel void k(device S* s, constant S& c, device float* y) { threadgroup S t; t.a = 1; S l = s[0]; S m = c; t =
    l; y[0] = s[0].get() + c.get() + l.get() + t.get(); }
"""),
    ("copies", """
struct S { float a; float4 v; S() = default; S(float x) : a(x), v(x) {} };
kernel void k(device S* s, constant S& c, device float4* y) { threadgroup S t[2]; S l = s[0]; s[1] = l; s[2] =
    s[3]; t[0] = s[0]; s[0] = t[0]; l = c; s[1] = c; y[0] = l.v * y[1] + c.v; y[0] += y[1]; y[1].xy = y[0].zw; }
"""),
    ("vectors in spaces", """
constant float4 tab[2] = {float4(1), {1,2,3,4}};
kernel void k(device float4* y, constant float4& c, constant float4x4& m, uint i [[thread_position_in_grid]]) {
    threadgroup float4 t[2]; t[0] = c; y[i] = m * y[i] + dot(t[0], y[0]) + tab[1].wzyx + normalize(c) +
    max(y[0], t[0]); y[i][2] = c[1]; bool4 b = y[i] < c; if (any(b)) y[i] = select(y[i], c, b); device float4& r
    = y[0]; r.xyz = cross(r.xyz, c.xyz); }
"""),
    ("the library's members in every space", """
kernel void k(device array<float, 3>* a, constant array<float, 3>& b, device float4* v, device float* y) {
    y[0] = (*a)[1] + a->size() + b[2] + v->wz.x + (*v)[1]; (*a)[0] = 1; v->xy = v->zw; v[1] = float4(v->xyz, 1); }
"""),
    ("program constants", """
constant float a = 1; constexpr constant float b = 2; static constant float c[2] = {1,2}; constant constexpr
    static const int d = 3; const constant int e = 1; namespace n { constant float z = 1; } struct S { static
    constexpr constant int N = 4; static constant float q = 1; }; template <class T> constant T pi = T(3.14);
{ y[i]=a+b+c[0]+d+e+n::z+S::N+pi<float>; }
"""),
    ("operator overload", """
struct C { float r, i; }; C operator+(C a, C b) { return {a.r+b.r, a.i+b.i}; } thread C& operator+=(thread C& a,
    C b) { a.r += b.r; return a; }
kernel void k(device C* y, uint i [[thread_position_in_grid]]) { C a = y[0] + y[1]; a += y[2]; y[i] = a; }
"""),
    ("one template, several kernels", """
template <class T> [[kernel]] void f(device T* y, uint i [[thread_position_in_grid]]) { y[i] = i; }
template [[host_name("a")]] [[kernel]] decltype(f<float>) f<float>;
typedef decltype(f<int>) t; template [[host_name("b")]] kernel t f<int>;
template [[host_name("c")]] [[kernel]] void f<uint>(device uint* y, uint i [[thread_position_in_grid]]);
"""),
    ("C++ that the preprocessor skips", """
#ifdef __METAL_VERSION__
#define real float
#else
#define real double
#include <vector>
std::vector<double> v; static int x; float* f();
#endif
{ real d = 1; y[i]=d; }
"""),
    ("unused macro double", """
#define D double
{ }
"""),
    ("double words", """
{ float doubled = 1, double_t1 = 2; int throwing = 1, news = 2, virtual_ = 3; y[i] = doubled + throwing; }
// double throw new
"""),
    ("deleted", """
struct S { float a; S() = default; void f() = delete; };
{ S s; s.a=1; y[i]=s.a; }
"""),
    ("switch case", """
{ switch (i) { case 0: y[i]=1; break; default: y[i]=2; } do { } while (false); }
"""),
    ("a function as a template argument", """
float sq(float x) { return x*x; } template <float (*F)(float)> float ap(float x) { return F(x); }
{ y[i]=ap<sq>(2); }
"""),
    ("atomics", """
kernel void k(device atomic_uint* c, device float* y, uint i [[thread_position_in_grid]]) { threadgroup
    atomic_uint t; atomic_store_explicit(&t, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit(&t, 1u, memory_order_relaxed);
    uint old = atomic_fetch_add_explicit(c, 1u, memory_order_relaxed); y[i] = old; }
"""),
    ("returned references", """
thread float& f(thread float& x) { return x; } device float* g(device float* p) { return p + 1; } device float&
    h(device float* p) { return *p; }
{ float a=1; f(a) = 2; *g(y) = a; h(y) = 3; }
"""),
    ("this", """
struct S { float a; thread S& set(float x) { a = x; return *this; } thread float* ptr() { return &a; } float
    get() const { return helper(this->a); } static float helper(float x) { return x; } };
{ S s; s.set(1).set(2); *s.ptr() = 3; y[i]=s.get(); }
"""),
    ("const void", """
float f(device const void* p) { return ((device const float*)p)[0]; }
{ y[i] = f(y) + *reinterpret_cast<device float*>(y) + as_type<float>(*(device uint*)y); }
"""),
    ("ptr to ptr", """
{ thread float* thread* pp; float a; thread float* p = &a; pp = &p; device float* thread* dp; device float* d =
    y; dp = &d; y[i] = **pp + **dp; device float* arr[2] = {y, y}; y[i]=arr[1][0]; }
"""),
    ("inputs", """
kernel void k(device float* y, ushort a [[thread_index_in_simdgroup]], uint3 b [[thread_position_in_grid]],
    ushort2 c [[threads_per_threadgroup]], const uint d [[thread_index_in_threadgroup]], uint e
    [[thread_position_in_grid]], uint e2 [[thread_position_in_grid]]) { y[e] = a + b.x + c.x + d + e2; }
"""),
    ("function constants that gate", """
constant bool on [[function_constant(0)]]; constant float w [[function_constant(1)]]; constant bool has =
    is_function_constant_defined(w); kernel void k(device float* y [[buffer(0)]], device float* z [[buffer(1),
    function_constant(on)]], uint i [[thread_position_in_grid]]) { if (on) y[i]=z[i]; if (has) y[i]=w; }
"""),
    ("threadgroup in blocks", """
{ if (i < 4) { threadgroup float t[4][4]; t[i][0]=1; y[i]=t[i][0]; } for (int j=0;j<2;j++) { threadgroup int2
    u[2]; u[j]=1; } }
"""),
    ("threadgroup in a kernel template", """
template <class T, int N> [[kernel]] void f(device T* y, uint i [[thread_position_in_grid]]) { threadgroup T
    t[N]; t[i % N] = i; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[i % N]; }
template [[host_name("f4")]] [[kernel]] decltype(f<float, 4>) f<float, 4>;
"""),
    ("macro params", """
#define ARGS device float* y, uint i [[thread_position_in_grid]]
#define TP thread float*
float f(TP p) { return *p; }
kernel void k(ARGS) { float a = 1; y[i] = f(&a); }
"""),
    ("enum class", """
enum class E : uchar { A, B }; enum F { X = 1 };
{ E e = E::B; y[i] = uint(e) + X; }
"""),
    ("union as", """
union U { float f; uint u; uchar4 c; };
{ U u; u.f = 1; y[i]=u.u; }
"""),
    ("inherit", """
struct A { float a; float get() const { return a; } }; struct B : A { float b; };
{ B b; b.a=1; y[i]=b.get(); }
"""),
    ("rvalue forwarding", """
template <class F> void go(F&& f) { f(); }
{ go([&]() { y[i] = 1; }); }
"""),
    ("long", """
{ long a = 1; ulong b = 2; int64_t c = 3; uint64_t d = 4ul; size_t e = 5; unsigned long f = 1; long int g = 2;
    y[i] = a+b+c+d+e+f+g; }
"""),
    ("noexcept", """
float f(float x) noexcept { return x; }
{ y[i]=f(1); }
"""),
    ("static functions and tables", """
static inline float f(float x) { return x; } static constant float t[] = {1,2,3};
{ y[i]=f(t[1]); }
"""),
    ("constant local", """
{ constexpr int N = 4; const float c[] = {1,2,3}; constexpr float d = 2; y[i] = c[0]+N+d; }
"""),
    ("const ref temp", """
float f(const thread float& x) { return x; }
{ y[i]=f(1.0) + f(y[i] + 1); }
"""),
    ("init list", """
struct S { float a; int b; };
constant S tab[] = {{1,2},{3,4}};
{ S s = tab[1]; constant S& r = tab[0]; constant S* p = tab; y[i] = s.a + r.b + p->a; }
"""),
    ("restrict and volatile", """
kernel void k(device float* __restrict y, volatile device float* z, device volatile atomic_int* c, uint i
    [[thread_position_in_grid]]) { y[i] = z[i]; }
"""),
    # Lists whose numbers fit
    ("integers that fit", "{ uchar c[2] = {200, 255}; int n{'a'}; uint u = {sizeof(float4)}; y[i] = c[0] + n + u; }"),
    ("floats that fit", "{ half h[2] = {0.1, 65504.0}; float v[2] = {1, 2u}; y[i] = h[0] + v[0]; }"),
    ("converted numbers", "{ float2 v = {float(i), 1}; ushort u[1] = {ushort(i + 1)}; y[i] = v.x + u[0]; }"),
    ("an empty return", "{ if (i == 0) return; y[i] = 1; }"),
    ("a cut outside of a list", "{ int v = 1.5f; uint u = -1; float2 w(i, 2.5); y[i] = v + u + w.x; }"),
)  # fmt: skip
