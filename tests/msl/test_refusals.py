"""Code that Apple's compiler refuses is refused here, at the right position, with a cure; similar valid code is not.

A line that begins with a brace is the body of a kernel, and gets its head; ``§`` marks the position that a message must
name. Both tables cover the rules in ``metalnb/msl/analysis/rules`` and ``metalnb/msl/libclang/hints.py``.
"""

import pytest
from msl.cells import place, program

import metalnb as mnb

# Name, source, message, hint.
REFUSED = (
    # Types (MSL 2.1)
    ("double", "{ §double d = 1; y[i] = d; }", "'double' is not supported in Metal", "write float (MSL 2.1)"),
    ("a cast to double", "{ y[i] = (§double)i; }", "'double' is not supported in Metal", "write float (MSL 2.1)"),
    ("double in a template's argument", "template <class T> T f(T x) { return x; }\n{ y[i] = f<§double>(1); }",
     "'double' is not supported in Metal",
     "write float (MSL 2.1)"),
    ("double through a macro", "#define REAL §double\n{ REAL d = 1; y[i] = d; }",
     "'double' is not supported in Metal",
     "write float (MSL 2.1)"),
    ("double in a buffer", "kernel void k(device §double* y) { y[0] = 1; }",
     "'double' is not supported in Metal",
     "write float (MSL 2.1)"),
    ("long double", "{ long §double d = 1; y[i] = d; }",
     "'double' is not supported in Metal",
     "write float (MSL 2.1)"),
    ("a long double literal", "{ y[i] = §1.0L; }",
     "a long double literal: Metal has no long double",
     "drop the suffix: a literal without one is float (MSL 2.1)"),
    ("long long", "{ long long §d = 1; y[i] = d; }",
     "'d' has the type long long, which Metal does not have",
     "write long: it has 64 bits (MSL 2.1)"),
    ("an array of unsigned long long in a struct", "struct S { unsigned long long §n[4]; };\n{ }",
     "'n' has the type unsigned long long, which Metal does not have",
     "write ulong: it has 64 bits (MSL 2.1)"),
    # C++ features that MSL lacks (MSL 1.5.4)
    ("throw", "{ §throw 1; }",
     "'throw': exceptions are not supported in Metal",
     "write an error code to a buffer (MSL 1.5.4)"),
    ("try", "{ §try { y[i] = 0; } catch (...) { } }",
     "'try': exceptions are not supported in Metal",
     "write an error code to a buffer (MSL 1.5.4)"),
    ("virtual", "struct S { virtual int §f(); };\n{ }",
     "'f' is virtual, which Metal does not support",
     "make the varying class a template parameter (MSL 1.5.4)"),
    ("new", "{ thread float* p = §new float[3]; }",
     "'new' is not supported in Metal",
     "memory is what the caller binds, threadgroup variables, and local arrays of a fixed size (MSL 1.5.4)"),
    ("delete", "{ §delete y; }",
     "'delete' is not supported in Metal",
     "memory is what the caller binds, threadgroup variables, and local arrays of a fixed size (MSL 1.5.4)"),
    ("goto", "{ §goto end; end: y[i] = 0; }",
     "goto is not supported",
     "write a loop, or return from a separate function (MSL 1.5.4)"),
    ("dynamic_cast", "struct A { }; struct B : A { };\n{ A a; B b = §dynamic_cast<thread B&>(a); }",
     "'dynamic_cast' is not supported in Metal",
     "there is no type information at run time: use a template (MSL 1.5.4)"),
    ("typeid", "{ §typeid(y); }",
     "'typeid' is not supported in Metal",
     "there is no type information at run time: use a template (MSL 1.5.4)"),
    ("thread_local", "§thread_local int x;\n{ }",
     "'thread_local' is not supported in Metal",
     "a variable in a function already belongs to its thread (MSL 1.5.4)"),
    ("register", "{ §register int x = 0; y[i] = x; }",
     "'register' is not supported in Metal",
     "remove 'register' (MSL 1.5.4)"),
    ("asm", '{ §asm("nop"); }', "asm is not supported", "MSL has no assembly: use the standard library's functions"),
    ("a variable number of arguments", "void §f(int n, ...) { }\n{ }",
     "a function cannot take a variable number of arguments",
     "write a variadic template: template <class... T> (MSL 1.5.4)"),
    ("printf", '{ §printf("%d", i); }',
     "'printf' does not exist in Metal",
     "print with os_log_default.log of <metal_logging>; printf is metalnb's own, behind #ifdef METALNB (MSL 6.19)"),
    ("main", "kernel void §main(device float* y) { }",
     "no function can be called 'main' in Metal",
     "rename it (MSL 1.5.4)"),
    ("recursion", "float f(int n) { return n < 2 ? 1 : n * §f(n - 1); }\n{ y[i] = f(i); }",
     "'f' calls itself: recursion is not supported",
     "write a loop, or a template that calls another instantiation of itself (MSL 1.5.4)"),
    ("recursion in a method",
     "struct S { float f(int n) { return n ? §this->f(n - 1) : 0; } };\n{ S s; y[i] = s.f(i); }",
     "'f' calls itself: recursion is not supported",
     "write a loop, or a template that calls another instantiation of itself (MSL 1.5.4)"),
    # Address spaces (MSL 4)
    ("a kernel's pointer without a space", "kernel void k(float* §y) { }",
     "kernel parameter 'y' has no address space",
     "write device or constant (or threadgroup) before its type (MSL 4)"),
    ("a kernel's pointer to thread memory", "kernel void k(thread float* §y) { }",
     "kernel parameter 'y' is in thread memory, which no caller can pass",
     "write device or constant (or threadgroup) in place of thread (MSL 4)"),
    ("a pointer parameter without a space", "float f(float* §p) { return *p; }\n{ }",
     "parameter 'p' is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("a const reference without a space", "float f(const float& §p) { return p; }\n{ }",
     "parameter 'p' is a reference without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float& (MSL 4)"),
    ("a parameter without a name", "float f(float*§) { return 0; }\n{ }",
     "a parameter is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("a lambda's parameter", "{ auto f = [](float& §x) { x = 1; }; float a; f(a); }",
     "parameter 'x' is a reference without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float& (MSL 4)"),
    ("a template's pointer to a known type", "template <class T> T f(float* §p) { return *p; }\n{ }",
     "parameter 'p' is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("a local pointer", "{ float* §p = y; y[i] = *p; }",
     "variable 'p' is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("an array of pointers", "{ float* §p[2]; }",
     "variable 'p' is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("a local reference", "{ float a; float& §p = a; }",
     "variable 'p' is a reference without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float& (MSL 4)"),
    ("a reference to an array", "{ float a[2]; float (&§p)[2] = a; }",
     "variable 'p' is a reference without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float& (MSL 4)"),
    ("a member pointer", "struct S { float* §p; };\n{ }",
     "member 'p' is a pointer without an address space",
     "write device, constant, threadgroup or thread before its type, as in thread float* (MSL 4)"),
    ("a returned pointer", "float* §f() { return 0; }\n{ }",
     "'f' returns a pointer without an address space",
     "write device, constant, threadgroup or thread before the type it returns (MSL 4)"),
    ("a method's returned reference", "struct S { float a; float& §get() { return a; } };\n{ }",
     "'get' returns a reference without an address space",
     "write device, constant, threadgroup or thread before the type it returns (MSL 4)"),
    ("a pointer to pointers", "kernel void k(device float** §y) { }",
     "a kernel parameter cannot point to 'device float *'",
     "point to a scalar, a vector, a matrix or a struct"),
    ("a local variable in device memory", "{ device float §d; }",
     "a variable in a function cannot have its own address space",
     "remove the address space, or declare a pointer or reference into it (MSL 4)"),
    ("a parameter in device memory", "float f(device float §x) { return x; }\n{ }",
     "a parameter cannot have its own address space",
     "make it a pointer or a reference: device float* or constant float& (MSL 4)"),
    ("a device pointer where a thread pointer is taken",
     "float f(thread float* p) { return *p; }\n{ y[i] = f(§y + i); }",
     "a device pointer is used as a thread pointer",
     "a pointer keeps its address space: write device before its type, not thread (MSL 4)"),
    ("a device value where a thread reference is taken", "void f(thread float& p) { p = 1; }\n{ f(§y[i]); }",
     "a device value is passed to 'f', which takes a thread reference",
     "copy it to a variable first, or overload 'f' for device references (MSL 4)"),
    ("a constant value where a thread reference is taken",
     ("struct S { float a; }; float f(const thread S& s) { return s.a; }\nkernel void k(constant S& s, device "
      "float* y) { y[0] = f(§s); }"),
     "a constant value is passed to 'f', which takes a thread reference",
     "copy it to a variable first, or overload 'f' for constant references (MSL 4)"),
    ("a device pointer in a thread pointer", "{ thread float* p = §y; y[i] = *p; }",
     "a device pointer is used as a thread pointer",
     "a pointer keeps its address space: write device before its type, not thread (MSL 4)"),
    ("a device pointer assigned to a thread pointer", "{ float a; thread float* p = &a; p = §y; }",
     "a device pointer is used as a thread pointer",
     "a pointer keeps its address space: write device before its type, not thread (MSL 4)"),
    ("a device pointer in a constant pointer", "{ constant float* p = §y; y[i] = *p; }",
     "a device pointer is used as a constant pointer",
     "a pointer keeps its address space: write device const before its type, not constant (MSL 4.2)"),
    ("a device value in a constant reference", "{ constant float& r = §y[i]; y[i] = r; }",
     "a device value is bound to a constant reference",
     "a reference keeps its address space: write device const before its type, not constant (MSL 4.2)"),
    ("a device value where a constant reference is taken",
     "float f(constant float& p) { return p; }\n{ y[i] = f(§y[i]); }",
     "a device value is passed to 'f', which takes a constant reference",
     "copy it to a variable first, or overload 'f' for device references (MSL 4.2)"),
    ("a cast to a pointer without a space", "{ y[i] = *§(uchar*)y; }",
     "a device pointer is used as a thread pointer",
     "a pointer keeps its address space: write device before its type, not thread (MSL 4)"),
    ("a member for thread objects on a device object",
     ("struct S { float a; float get() const { return a; } };\nkernel void k(device S* s, device float* y) { "
      "y[0] = §s[0].get(); }"),
     "'get' is a member for thread objects; this object is in device memory",
     "declare it for device objects too: get(…) const device { … } (MSL 4)"),
    ("a member for thread objects through an arrow",
     ("struct S { float a; float get() const { return a; } };\nkernel void k(device S* s, device float* y) { "
      "y[0] = §s->get(); }"),
     "'get' is a member for thread objects; this object is in device memory",
     "declare it for device objects too: get(…) const device { … } (MSL 4)"),
    ("writing to a constant buffer", "kernel void k(constant float* y) { y[0] §= 1; }",
     "read-only variable is not assignable",
     "it is read-only: write device in place of constant, or remove const (MSL 4.2)"),
    ("writing to a const buffer", "kernel void k(device const float* y) { y[0] §= 1; }",
     "read-only variable is not assignable",
     "it is read-only: write device in place of constant, or remove const (MSL 4.2)"),
    ("writing to a constant struct", "struct S { float a; };\nkernel void k(constant S& s) { s.a §= 1; }",
     "cannot assign to variable 's' with const-qualified type 'constant S&'",
     "it is read-only: write device in place of constant, or remove const (MSL 4.2)"),
    # Address spaces of variables (MSL 4.2, 4.4, 5.3)
    ("a variable at program scope", "float §x = 1;\n{ y[i] = x; }",
     "program-scope variable 'x' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("a const at program scope", "const float §x = 1;\n{ y[i] = x; }",
     "program-scope variable 'x' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("a constexpr at program scope", "constexpr float §x = 1;\n{ y[i] = x; }",
     "program-scope variable 'x' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("a variable in a namespace", "namespace n { float §x[2]; }\n{ }",
     "program-scope variable 'x' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("a static member", "struct S { static constexpr int §n = 4; };\n{ }",
     "program-scope variable 'n' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("an extern variable", "extern constant float §x;\n{ y[i] = x; }",
     "extern variable 'x' has no value: a cell is a complete program",
     "give it a value, or [[function_constant(n)]]"),
    ("a constant without a value", "constant float §x;\n{ y[i] = x; }",
     "a variable in the constant address space must be initialized",
     "give it a value, or [[function_constant(n)]] (MSL 4.2)"),
    ("a static variable in a function", "{ static int §n = 0; y[i] = n; }",
     "variable 'n' in a function cannot be static",
     "drop static; for a table write constant at program scope (MSL 5.3)"),
    ("threadgroup at program scope", "threadgroup float §t[4];\n{ }",
     "threadgroup variable 't' is declared outside a kernel",
     "declare it in the kernel's body (MSL 4.4)"),
    ("threadgroup in a helper", "void f() { threadgroup float §t[4]; t[0] = 1; }\n{ f(); }",
     "threadgroup variable 't' is declared outside a kernel",
     "declare it in a kernel's body, and pass 'f' a pointer to it (MSL 4.4)"),
    ("threadgroup in a struct", "struct S { threadgroup float §t; };\n{ }",
     "member 't' cannot have its own address space",
     "drop threadgroup: a member lives where its struct does (MSL 4)"),
    ("threadgroup with a list of values", "{ threadgroup float §t[2] = {1, 2}; y[i] = t[0]; }",
     "a threadgroup variable cannot be initialized where it is declared",
     "declare it without a value; let one thread assign it, then call a threadgroup_barrier (MSL 4.4)"),
    ("too much threadgroup memory", "{ threadgroup float §t[9000]; t[i] = 1; y[i] = t[0]; }",
     "with 't' kernel 'k' declares 36,000 bytes of threadgroup memory; Metal allows 32,768",
     "make its threadgroup variables smaller"),
    ("too much threadgroup memory in all",
     "{ threadgroup float4 a[1024], b[1024], §c[1]; a[i] = b[i] = c[0]; y[i] = a[0].x; }",
     "with 'c' kernel 'k' declares 32,784 bytes of threadgroup memory; Metal allows 32,768",
     "make its threadgroup variables smaller"),
    ("an array as long as a function constant",
     "constant int n [[function_constant(0)]];\n{ float t[§n]; y[i] = t[0]; }",
     "an array's size must be known when the kernel is parsed",
     "use a template parameter, a macro or the largest size; a function constant is known only later (MSL 5.8)"),
    ("an array as long as a variable", "{ float t[§i]; y[i] = t[0]; }",
     "an array's size must be known when the kernel is parsed",
     "use a template parameter, a macro or the largest size; a function constant is known only later (MSL 5.8)"),
    # Kernels and their arguments (MSL 5.1, 5.2, 5.8)
    ("a kernel that returns a value", "kernel int §k(device float* y) { return 1; }",
     "kernel 'k' returns int; a kernel returns void",
     "write what it computes to a device buffer (MSL 5.1)"),
    ("a kernel in a struct", "struct S { kernel void §k(device float* y) { } };",
     "kernel 'k' is a member function",
     "move it out of its struct: a kernel is at program scope or in a namespace (MSL 5.1)"),
    ("a kernel that is called",
     "{ }\nkernel void m(device float* y, uint i [[thread_position_in_grid]]) { §k(y, i); }",
     "kernel 'k' is called like a function",
     "move what both need into a function without kernel, and call that (MSL 5.1)"),
    ("two kernels with one name",
     "kernel void k(device float* y) { }\nkernel void §k(device int* z) { }",
     "two kernels are named 'k' (the other is on line 3)",
     "rename one: a program binds each kernel by its name"),
    ("no kernel", "float f(float x) { return x; }",
     "no kernel in this cell",
     "mark a function with kernel void …, or keep the text for other cells with %%metal --header NAME"),
    ("one buffer index for two", "kernel void k(device float* a [[buffer(1)]], device float* §b [[buffer(1)]]) { }",
     "[[buffer(1)]] is given to both 'a' and 'b'",
     "give each buffer its own index"),
    ("a buffer index over 30", "kernel void k(device float* §a [[buffer(31)]]) { }",
     "'a' [[buffer(31)]]: Metal has indices 0 to 30",
     "pass fewer, larger buffers: a struct holds many values (MSL 5.2.1)"),
    ("a 32nd buffer",
     "kernel void k(" + "".join(f"device int* b{n}, " for n in range(31)) + "device int* §b31) { }",
     "'b31' [[buffer(31)]]: Metal has indices 0 to 30",
     "pass fewer, larger buffers: a struct holds many values (MSL 5.2.1)"),
    ("a negative index", "kernel void k(device float* a [[§buffer(-1)]]) { }",
     "'buffer' needs a constant integer that is not negative",
     ""),
    ("an index that is not a constant", "kernel void k(device float* a [[§buffer(n)]]) { }",
     "use of undeclared identifier 'n'",
     ""),
    ("buffer on threadgroup memory", "kernel void k(threadgroup float* §t [[buffer(0)]]) { }",
     "'t' is in threadgroup memory, but has the attribute 'buffer'",
     "write [[threadgroup(n)]] (MSL 5.2.1)"),
    ("threadgroup on a buffer", "kernel void k(device float* §y [[threadgroup(0)]]) { }",
     "'y' is in device memory, but has the attribute 'threadgroup'",
     "write [[buffer(n)]] (MSL 5.2.1)"),
    ("an unknown attribute", "kernel void k(device float* y [[§bufer(0)]]) { }",
     "unknown attribute 'bufer'",
     "did you mean [[buffer]]?"),
    ("an attribute without its argument", "kernel void k(device float* y [[§buffer]]) { }",
     "attribute 'buffer' needs an argument: [[buffer(…)]]",
     ""),
    ("an attribute with an argument too many",
     "kernel void k(device float* y, uint i [[§thread_position_in_grid(0)]]) { }",
     "attribute 'thread_position_in_grid' takes no argument: [[thread_position_in_grid]]",
     ""),
    ("a struct by value", "struct S { float a; };\nkernel void k(S §s, device float* y) { }",
     "kernel parameter 's' of type 'S' is neither a buffer nor an input",
     ("for a value from Python write: constant S& s; for a thread index add an attribute such as "
      "[[thread_position_in_grid]] (MSL 5.2)")),
    ("a number by value", "kernel void k(device float* y, uint §n) { }",
     "kernel parameter 'n' of type 'uint' is neither a buffer nor an input",
     ("for a value from Python write: constant uint& n; for a thread index add an attribute such as "
      "[[thread_position_in_grid]] (MSL 5.2)")),
    ("an input as float", "kernel void k(device float* y, float §i [[thread_position_in_grid]]) { }",
     "type 'float' is not valid for attribute 'thread_position_in_grid'",
     "declare 'i' as uint, uint2, uint3, ushort, ushort2 or ushort3 (MSL 5.2.3.6)"),
    ("an input as int", "kernel void k(device float* y, int §i [[thread_index_in_threadgroup]]) { }",
     "type 'int' is not valid for attribute 'thread_index_in_threadgroup'",
     "declare 'i' as uint or ushort (MSL 5.2.3.6)"),
    ("an input of four components", "kernel void k(device float* y, uint4 §i [[thread_position_in_grid]]) { }",
     "type 'uint4' is not valid for attribute 'thread_position_in_grid'",
     "declare 'i' as uint, uint2, uint3, ushort, ushort2 or ushort3 (MSL 5.2.3.6)"),
    ("an index of two components", "kernel void k(device float* y, uint2 §i [[thread_index_in_simdgroup]]) { }",
     "type 'uint2' is not valid for attribute 'thread_index_in_simdgroup'",
     "declare 'i' as uint or ushort (MSL 5.2.3.6)"),
    ("both names of a SIMD-group's width",
     "kernel void k(device uint* y, uint §a [[thread_execution_width]], uint b [[threads_per_simdgroup]]) { }",
     "a kernel cannot have inputs with both 'thread_execution_width' and 'threads_per_simdgroup'",
     "they are one number: drop 'a', as thread_execution_width is deprecated (MSL 5.2.3.6)"),
    ("both names of a SIMD-group's width in a template",
     ("template <class T> kernel void k(device T* y, ushort b [[threads_per_simdgroup]],\n"
      "  uint §a [[thread_execution_width]]) { }\n"
      'template [[host_name("h")]] kernel void k(device uint*, ushort, uint);'),
     "a kernel cannot have inputs with both 'thread_execution_width' and 'threads_per_simdgroup'",
     "they are one number: drop 'a', as thread_execution_width is deprecated (MSL 5.2.3.6)"),
    ("an input by reference", "kernel void k(device float* y, device uint& §i [[thread_position_in_grid]]) { }",
     "type 'device uint &' is not valid for attribute 'thread_position_in_grid'",
     "declare 'i' as uint, uint2, uint3, ushort, ushort2 or ushort3 (MSL 5.2.3.6)"),
    ("more threads than a threadgroup has",
     "[[§max_total_threads_per_threadgroup(2048)]] kernel void k(device float* y) { }",
     "max_total_threads_per_threadgroup(2048): a threadgroup has 1 to 1024 threads",
     "write a number from 1 to 1024 (MSL 5.1.3)"),
    ("a threadgroup of no threads", "[[§max_total_threads_per_threadgroup(0)]] kernel void k(device float* y) { }",
     "max_total_threads_per_threadgroup(0): a threadgroup has 1 to 1024 threads",
     "write a number from 1 to 1024 (MSL 5.1.3)"),
    ("a function constant that is not constant", "int §n [[function_constant(0)]];\n{ }",
     "program-scope variable 'n' must be in the constant address space",
     "write constant before its type; for data that a kernel writes, pass a device buffer (MSL 4.2)"),
    ("a function constant of a struct", "struct S { float a; };\nconstant S §n [[function_constant(0)]];\n{ }",
     "function constant 'n' of type 'S'",
     "a function constant is a scalar or a vector; pass larger values in a constant buffer (MSL 5.8.1)"),
    ("a function constant of a matrix", "constant float2x2 §n [[function_constant(0)]];\n{ }",
     "function constant 'n' of type 'float2x2'",
     "a function constant is a scalar or a vector; pass larger values in a constant buffer (MSL 5.8.1)"),
    # Features that metalnb does not support
    ("a stage's input", "struct S { float a; };\nkernel void k(S §s [[stage_in]], device float* y) { }",
     "'s' has the attribute 'stage_in': metalnb runs compute kernels on buffers",
     "pass the values in a device or constant buffer"),
    ("a texture", "kernel void k(§texture2d<float> t [[texture(0)]]) { }",
     "'texture2d' is not available: metalnb runs compute kernels on buffers",
     "pass the pixels in a device or constant buffer"),
    ("a sampler", "kernel void k(§sampler s [[sampler(0)]], device float* y) { }",
     "'sampler' is not available: metalnb runs compute kernels on buffers",
     "pass the pixels in a device or constant buffer"),
)  # fmt: skip


ONE_NUMBER = "take a component, such as i.x, or make one number of a position p: p.y * width + p.x"
_LONG = (
    "a 64-bit atomic has only atomic_max_explicit and atomic_min_explicit, in device memory, and they return nothing "
    "(MSL 6.15.4.6)"
)
_FLOAT = (
    "an atomic_float is loaded, stored, exchanged, and changed by atomic_fetch_add_explicit and "
    "atomic_fetch_sub_explicit (MSL 6.15.4)"
)
_BOOL = "an atomic_bool is loaded, stored and exchanged; to count or combine bits use an atomic_uint (MSL 6.15.4)"
_ONE = "a, 1, memory_order_relaxed"
# An operation, the type that lacks it, an address space, the arguments, the rest of the message, and the hint.
LACKED = (
    *(
        (f"atomic_{name}_explicit", "atomic_ulong", space, arguments, "", _LONG)
        for space in ("device", "threadgroup")
        for name, arguments in (
            ("load", "a, memory_order_relaxed"), ("store", _ONE), ("exchange", _ONE),
            ("compare_exchange_weak", "a, nullptr, 1, memory_order_relaxed, memory_order_relaxed"),
            *((f"fetch_{op}", _ONE) for op in ("add", "sub", "and", "or", "xor", "min", "max")),
        )
    ),
    *(
        (f"atomic_{name}_explicit", "atomic_ulong", "threadgroup", _ONE, " in threadgroup memory",
         "64-bit atomics are only in device memory (MSL 6.15.4.6)")
        for name in ("min", "max")
    ),
    *(
        (f"atomic_fetch_{op}_explicit", "atomic_float", "device", _ONE, "", _FLOAT)
        for op in ("and", "or", "xor", "min", "max")
    ),
    *(
        (f"atomic_fetch_{op}_explicit", "atomic_bool", "device", _ONE, "", _BOOL)
        for op in ("add", "sub", "and", "or", "xor", "min", "max")
    ),
)  # fmt: skip

# Like the above: clang's rules, which docs/msl.md does not list, and how such errors are reported.
REFUSED_BY_CLANG = (
    # Code that clang refuses unless warnings are turned off
    ("a kernel with a value to return", "{ if (i == 0) §return 1; y[i] = 1; }",
     "void function 'k' should not return a value",
     "write return; alone: a kernel writes its results to buffers"),
    ("a return without a value", "float f(float x) { §return; }\n{ y[i] = f(i); }",
     "non-void function 'f' should return a value",
     "write a value after return"),
    ("a number cut in a list", "{ int v[2] = {1, §2.5f}; y[i] = v[0]; }",
     "type 'float' cannot be narrowed to 'int' in initializer list",
     "braces do not narrow: convert explicitly, as in float(x)"),
    ("a negative number for an unsigned one", "{ uint u{§-1}; y[i] = u; }",
     "constant expression evaluates to -1 which cannot be narrowed to type 'uint'",
     "braces do not narrow: convert explicitly, as in float(x)"),
    ("a variable cut in a vector's list", "{ float2 v = {1, §i}; y[i] = v.x; }",
     "non-constant-expression cannot be narrowed from type 'uint' to 'float' in initializer list",
     "braces do not narrow: convert explicitly, as in float(x)"),
    ("a number cut in an instantiated template",
     "template <class T> T f(T x) { T v[1] = {§1.5f}; return v[0] + x; }\n{ y[i] = f(i); }",
     "type 'float' cannot be narrowed to 'uint' in initializer list",
     "braces do not narrow: convert explicitly, as in float(x)"),
    # Templates of kernels (MSL 5.1)
    ("a kernel template alone",
     "template <typename T> kernel void §fill(device T* o, uint i [[thread_position_in_grid]]) { o[i] = 1; }",
     "no kernel in this cell: the kernel template 'fill' is not instantiated",
     'write after it: template [[host_name("fill_float")]] [[kernel]] decltype(fill<float>) fill<float>; (MSL 5.1)'),
    ("a kernel template of several parameters",
     "template <typename T, int N> [[kernel]] void §f(device T* o) { o[0] = N; }",
     "no kernel in this cell: the kernel template 'f' is not instantiated",
     'write after it: template [[host_name("f_float_1")]] [[kernel]] decltype(f<float, 1>) f<float, 1>; (MSL 5.1)'),
    # A threadgroup variable's initial value, unless it is 0 (MSL 4.4)
    *(
        (f"threadgroup {declared}",
         f"enum E {{ A }}; struct S {{ float a; }};\n{{ threadgroup {declared}; y[i] = 1; }}",
         "a threadgroup variable cannot be initialized where it is declared",
         "declare it without a value; let one thread assign it, then call a threadgroup_barrier (MSL 4.4)")
        for declared in (
            "float §s = 1.0f", "float §s{1}", "float §s(1)", "bool §s = true", "half §s = 1.0h",
            "uint §s = i", "auto §s = 1.0f", "const float §s = 1", "unsigned int §s = 1", "float4 §s = float4(1)",
            "float2x2 §s = float2x2(1)", "S §s = {1}", "E §s = A", "array<float, 2> §s = {1, 2}",
            "atomic_uint §s = {1}",
        )
    ),
    # A call that matches two overloads equally
    *(
        (f"an ambiguous {call}", f"{{ int n = 1; half h = 1; float f = 1; y[i] = §{call}; }}",
         f"call to '{call.partition('(')[0]}' is ambiguous", f"{fitting} fit equally: write {casts}")
        for call, fitting, casts in (
            ("clamp(i, 0, n)", "clamp(uint, uint, uint) and clamp(int, int, int)",
             "uint(…) for argument 2 and uint(…) for argument 3"),
            ("clamp(f, 0, 1)", "clamp(float, float, float) and clamp(int, int, int)",
             "float(…) for argument 2 and float(…) for argument 3"),
            ("min(i, n)", "min(uint, uint) and min(int, int)", "uint(…) for argument 2"),
            ("max(0, f)", "max(float, float) and max(int, int)", "float(…) for argument 1"),
            ("max(h, 0)", "max(half, half) and max(int, int)", "half(…) for argument 2"),
            ("mix(f, h, 0.5h)", "mix(float, float, float) and mix(half, half, half)",
             "float(…) for argument 2 and float(…) for argument 3"),
            ("sqrt(n)", "sqrt(float) and sqrt(half)", "float(…) for argument 1"),
        )
    ),
    ("an ambiguous call of the author's own",
     "float f(float a, int b) { return a + b; }\nfloat f(int a, float b) { return a + b; }\n{ y[i] = §f(1, 2); }",
     "call to 'f' is ambiguous",
     "f(float, int) and f(int, float) fit equally: write float(…) for argument 1"),
    # An index (MSL 2.2)
    ("a vector for an index", "{ uint3 g = i; y§[g] = 1; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for an array's index", "{ float a[3] = {}; uint2 g = i; y[i] = a§[g]; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for a vector's index", "{ float4 a = 0; uint2 g = i; y[i] = a§[g]; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for a packed vector's index", "{ packed_float3 a = float3(0); uint2 g = i; y[i] = a§[g]; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for a matrix's index", "{ float4x4 a(1); uint2 g = i; y[i] = a§[g].x; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for an index into array<T, n>", "{ array<float, 2> a = {}; uint2 g = i; y[i] = a§[g]; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a struct for an index", "struct S { int n; };\n{ S s = {1}; y§[s] = 1; }",
     "an index is one number, not a vector or a struct", ONE_NUMBER),
    ("a vector for an offset", "{ uint3 g = i; *(y §+ g) = 1; }",
     "an offset is one number, not a vector", ONE_NUMBER),
    ("a vector before the pointer", "{ int2 g = i; *(g §+ y) = 1; }",
     "an offset is one number, not a vector", ONE_NUMBER),
    # Types composed of elements (MSL 2.2, 2.3)
    ("a matrix of a class", "struct C { float r, i; };\n{ matrix<C, 4, 4> §m; y[i] = m[0][0].r; }",
     "a matrix has elements of type half, float or bfloat",
     "choose one of these types; your own class goes into an array (MSL 2.3)"),
    ("a matrix of integers", "{ matrix<int, 2, 2> §m; y[i] = m[0][0]; }",
     "a matrix has elements of type half, float or bfloat",
     "choose one of these types; your own class goes into an array (MSL 2.3)"),
    ("a SIMD-group's matrix of a class", "struct C { float r, i; };\n{ simdgroup_matrix<C, 8, 8> §m; y[i] = 1; }",
     "a simdgroup_matrix has elements of type half, float or bfloat",
     "choose one of these types; your own class goes into an array (MSL 2.3.4)"),
    ("a vector of a class", "struct C { float r, i; };\n{ vec<C, 4> §v; y[i] = v[0].r; }",
     "a vec has elements of type bool, bfloat or a built-in number",
     "choose one of these types; your own class goes into an array (MSL 2.2)"),
    # Operations that an atomic lacks (MSL 6.15.4)
    *(
        (f"{name} of {type_} in {space}",
         f"kernel void k({space} {type_}* a) {{\n §{name}({arguments}); }}",
         f"'{name}' does not take an '{type_}'" + words,
         hint)
        for name, type_, space, arguments, words, hint in LACKED
    ),
    # Macros
    ("a macro's own error", "#define BODY(x) \\\n  y[x] = \\\n  undefd + 1;\n{ §BODY(i) }",
     "use of undeclared identifier 'undefd' (in the macro BODY, line 5)",
     ""),
    ("an error in a macro's macro", "#define IN(x) undefd(x)\n#define BODY(x) y[x] = IN(x);\n{ §BODY(i) }",
     "use of undeclared identifier 'undefd' (in the macro IN, line 3)",
     ""),
    ("an error that speaks of a macro's function",
     "#define DEFINE(f) float f(float x) { return x; }\nDEFINE(g)\n{ y[i] = §g(); }",
     "no matching function for call to 'g'",
     "check the number and types of the arguments of 'g'"),
    ("an error in a macro's argument", "#define BODY(x) y[i] = x;\n{ §BODY(undefd) }",
     "use of undeclared identifier 'undefd'",
     ""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "hint"), [pytest.param(*row[1:], id=row[0]) for row in (*REFUSED, *REFUSED_BY_CLANG)]
)
def test_refused(text: str, message: str, hint: str) -> None:
    source, line, column = place(program(text))
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert (error.line, error.column) == (line, column)
    assert error.diagnostics[0].text == source.split("\n")[line - 1]
    assert [d.message for d in error.diagnostics] == [message]  # reported once, without consequential errors


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


@pytest.mark.parametrize("text", [pytest.param(row[1], id=row[0]) for row in ACCEPTED])
def test_accepted(text: str) -> None:
    constants = {"on": True} if "function_constant" in text else {}
    assert mnb.compile(program(text), constants=constants).kernels


def test_a_macro_of_a_header_cell_is_named_with_it() -> None:
    headers = {"helper": "#define HALF(x) \\\n  (undefd * x)\n"}
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program('#include "helper"\n{ y[i] = HALF(i); }'), headers=headers)
    assert caught.value.message == "use of undeclared identifier 'undefd' (in the macro HALF, helper line 2)"


def test_the_instantiation_that_is_advised_makes_a_kernel() -> None:
    text = "template <typename T, int N, bool b>\nkernel void fill(device T* o) { o[0] = b ? N : 0; }"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program(text))
    advice = caught.value.hint.removeprefix("write after it: ").removesuffix(" (MSL 5.1)")
    assert list(mnb.compile(program(f"{text}\n{advice}"))) == ["fill_float_1_1"]


def test_a_rule_broken_in_a_header_cell_names_the_header_cell() -> None:
    helper = "float twice(float* x) { return 2 * *x; }\n"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program('#include "helper"\n{ y[i] = 1; }'), headers={"helper": helper})
    found = caught.value.diagnostics[0]
    assert (found.file, found.line, found.column) == ("helper", 1, helper.index("x)") + 1)


def test_all_violations_are_reported_in_source_order() -> None:
    text = "float a = 1;\nfloat f(float* p) { return f(p); }\n{ goto end; end: y[i] = a; }"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program(text))
    assert [d.line for d in caught.value.diagnostics] == [3, 4, 4, 5]
