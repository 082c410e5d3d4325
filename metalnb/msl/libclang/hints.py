"""Put clang's messages into Metal's terms, and add a hint on how to fix the error if there is one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from metalnb.dtypes import SCALARS

from ..language.reference import lookup
from ..language.unsupported import answer
from .flags import TARGET

__all__ = ["TO_BFLOAT", "free_words", "hint_for", "reword"]

# Patterns stay text, which `re` compiles on first use and caches, because most cells cause no message.
_WORDS = (
    # An operand of ?:, which is read through an operator that metalnb inserts.
    (r"'[^']*::\$copied' \(aka ('[^']*')\)", r"\1"),
    (r"'[^']*decltype\(\$type<[^']*' \(aka ('[^']*')\)", r"\1"),
    (r"decltype\(\$type<([^'$]*?) ?&*>\(0\)\)", r"\1"),
    (r"(?:typename )?\$thread_type<(?:\$T_)?(\w+)>::type|\$T_(\w+)", r"\1\2"),
    (r"__global_device\b|__attribute__\(\(opencl_global_device\)\)", "device"),
    (r"\bconst __global\b|\b__global const\b", "constant"),
    (r"\b__global\b", "device"),
    (r"\b__local\b", "threadgroup"),
    (r"'(?:__private|__generic) ([^'*&]+)'", r"'\1'"),
    (r"\b(?:__private|__generic)\b", "thread"),
    (r"\b__constant\b", "constant"),
    (r"\bconst constant\b", "constant"),
    (r"\bunsigned (int|char|short|long)(?=\d|\b)", r"u\1"),
    (r"\b(?:metal::)?vec<(\w+), (\d)>", r"\1\2"),
    (r"'([^']+)' \(aka '\1'\)", r"'\1'"),
    (r" \(aka '\$vote<[^']*'\)", ""),
    (r"\$(atomic_\w+)'(?: \(aka '[^']*'\))?", r"\1'"),
    (r"\bmetal::", ""),
    (r"\*(thread)\b", "*"),
    (r" ?([&*])thread\b", r"\1"),
    (r"\b(?:OpenCL|C\+\+ for OpenCL)\b(?: version \d+)?", "Metal"),
)

TO_BFLOAT = "write bfloat(x): a float does not convert to bfloat implicitly (MSL 2.1)"
_POINTER = r"'[^']*\*(?:__\w+)?'(?: \(aka '[^']*'\))?"
_VECTOR = r"'(?:\w+ )*u?(?:int|short|char|long)[234]'(?: \(aka '[^']*'\))?"
_ONE_NUMBER = "take a component, such as i.x, or make one number of a position p: p.y * width + p.x"

# The compiler's errors that are also errors in Metal, in Metal's words, with the hint.
_REFUSALS = (
    (r"right hand operand to ->\* has non-pointer-to-member type 'void'",
     "an operand of ?: has no value: it is of type 'void'",
     "write if and else"),
    (r"initializer list cannot be used on the right hand side of operator '->\*'",
     "an initializer list cannot be an operand of ?:",
     "name its type, as in float2{1, 2}"),
    (r"cannot assign to variable '\$scope'",
     "cannot assign to an input at program scope",
     "copy it to a variable (MSL 5.9)"),
    (r"no matching member function for call to '\$set_(\w+)'",
     r"cannot assign this value to '\1' of a vector",
     "the vector may be const, or the value of another type: a float becomes a bfloat only by bfloat(x) (MSL 2.1)"),
    (r"overload resolution selected deleted operator '='",
     "cannot assign a value of type 'float' to a 'bfloat'",
     TO_BFLOAT),
    (r"no viable conversion from (?:[a-z ]+ )?'(?:[^']*' \(aka ')?[^']*\bfloat'\)? to (?:[a-z ]+ )?'[^']*\bbfloat'",
     "cannot make a 'bfloat' of a value of type 'float'",
     TO_BFLOAT),
    (r"cannot use '(throw|try)' with exceptions disabled",
     r"'\1': exceptions are not supported in Metal",
     "write an error code to a buffer (MSL 1.5.4)"),
    (r"'default (new|delete)' is not supported",
     r"'\1' is not supported in Metal",
     "memory is what the caller binds, threadgroup variables, and local arrays of a fixed size (MSL 1.5.4)"),
    (r"'(dynamic_cast|typeid)' is not supported",
     r"'\1' is not supported in Metal",
     "there is no type information at run time: use a template (MSL 1.5.4)"),
    (r"thread-local storage is not supported|does not support the 'thread_local' storage",
     "'thread_local' is not supported in Metal",
     "a variable in a function already belongs to its thread (MSL 1.5.4)"),
    (r"does not support the 'register' storage",
     "'register' is not supported in Metal",
     "remove 'register' (MSL 1.5.4)"),
    (r"variadic arguments are not allowed",
     "a function cannot take a variable number of arguments",
     "write a variadic template: template <class... T> (MSL 1.5.4)"),
    (r"no matching literal operator for call to 'operator\"\"h'",
     "invalid suffix 'h' on an integer",
     "add a decimal point: 3.0h (MSL 2.1)"),
    (r"function cannot be called 'main'",
     "no function can be called 'main' in Metal",
     "rename it (MSL 1.5.4)"),
    (r"use of undeclared identifier 'std'",
     "the C++ standard library is not available in Metal",
     "MSL's own library is in namespace metal: #include <metal_stdlib> (MSL 1.5.4)"),
    (r"use of undeclared identifier '(f?printf)'",
     r"'\1' does not exist in Metal",
     "print with os_log_default.log of <metal_logging>; printf is metalnb's own, behind #ifdef METALNB (MSL 6.19)"),
    (r"(?:use of undeclared identifier|unknown type name|no (?:type|member) named) '(os_log(?:_default)?)'",
     r"'\1' is declared in <metal_logging>",
     "add #include <metal_logging> (MSL 6.19)"),
    (r"variable cannot be declared in local address space",
     "a threadgroup variable cannot be initialized where it is declared",
     "declare it without a value; let one thread assign it, then call a threadgroup_barrier (MSL 4.4)"),
    (r"default initialization of an object of const type '(?:const )?(?:const __global|__global const)",
     "a variable in the constant address space must be initialized",
     "give it a value, or [[function_constant(n)]] (MSL 4.2)"),
    (r"an atomic function takes memory_order_relaxed alone",
     "an atomic function takes memory_order_relaxed alone",
     "order memory with a barrier or with atomic_thread_fence (MSL 6.15.1)"),
    (r"('atomic_m(?:ax|in)_explicit' does not take an 'atomic_ulong')",
     r"\1 in threadgroup memory",
     "64-bit atomics are only in device memory (MSL 6.15.4.6)"),
    (r"('atomic_\w+' does not take an 'atomic_ulong')",
     r"\1",
     ("a 64-bit atomic has only atomic_max_explicit and atomic_min_explicit, in device memory, and they return "
      "nothing (MSL 6.15.4.6)")),
    (r"('atomic_\w+' does not take an 'atomic_float')",
     r"\1",
     ("an atomic_float is loaded, stored, exchanged, and changed by atomic_fetch_add_explicit and "
      "atomic_fetch_sub_explicit (MSL 6.15.4)")),
    (r"('atomic_\w+' does not take an 'atomic_bool')",
     r"\1",
     "an atomic_bool is loaded, stored and exchanged; to count or combine bits use an atomic_uint (MSL 6.15.4)"),
    (r"static assertion failed.*': (an? \w+ has elements of type .*) \(MSL ([\d.]+)\)$",
     r"\1",
     r"choose one of these types; your own class goes into an array (MSL \2)"),
    (r"invalid vector element type '",  # this error follows from the assertion above
     "a vec has elements of type bool, bfloat or a built-in number",
     "choose one of these types; your own class goes into an array (MSL 2.2)"),
    (r"no viable overloaded operator\[\] for type '[^']*(?:\*(?:__\w+)?|\])'",
     "an index is one number, not a vector or a struct",
     _ONE_NUMBER),
    (rf"invalid operands to binary expression \((?:{_POINTER} and {_VECTOR}|{_VECTOR} and {_POINTER})\)",
     "an offset is one number, not a vector",
     _ONE_NUMBER),
    (r"array size is not a constant|variable length array",
     "an array's size must be known when the kernel is parsed",
     "use a template parameter, a macro or the largest size; a function constant is known only later (MSL 5.8)"),
    (r"indirect call is encountered",
     "a function is called through a pointer that is known only at run time",
     "choose with if or switch, or make the function a template's parameter"),
    (r"automatic variable qualified with an(?: invalid)? address space|cannot be declared in (?:global|constant) addr",
     "a variable in a function cannot have its own address space",
     "remove the address space, or declare a pointer or reference into it (MSL 4)"),
    (r"parameter may not be qualified with an address space",
     "a parameter cannot have its own address space",
     "make it a pointer or a reference: device float* or constant float& (MSL 4)"),
)  # fmt: skip

_METAL_NAMES = frozenset("""
    sin cos tan exp exp2 log log2 log10 pow sqrt rsqrt abs fabs min max clamp mix step smoothstep dot cross length
    normalize distance floor ceil round trunc fract fma select any all sign saturate as_type simd_sum simd_max simd_min
    threadgroup_barrier simdgroup_barrier mem_flags atomic_uint atomic_int atomic_float memory_order_relaxed
    float2x2 float3x3 float4x4 half4x4
    atomic_fetch_add_explicit atomic_load_explicit atomic_store_explicit popcount clz ctz float2 float3 float4 half2
    half4 uint2 uint3 uint4 int2 int3 int4 vec numeric_limits
""".split())  # noqa: SIM905  (a page of names)

# The hint for each of CUDA's and Python's names for things that Metal names differently.
_FOREIGN = {
    "print": 'print with os_log_default.log("x = %f", x) of <metal_logging>',
    "np": "drop the prefix: write exp(x) for np.exp(x)",
    "len": "pass the length as a parameter, constant uint& n: a buffer does not know its length",
    "range": "in Metal, write for (uint k = 0; k < n; ++k) { … }",
    "import": "in Metal, write #include <metal_stdlib>",
    "def": "begin with kernel void, or with the type that the function returns",
    "elif": "in Metal, write else if",
    "float16": "in Metal, write half",
    "float32": "in Metal, write float",
    "float64": "in Metal, write float: there is no double",
    "uint8": "in Metal, write uchar",
    "int32": "in Metal, write int",
    "uint32": "in Metal, write uint",
    "__global__": "in Metal, write kernel void",
    "__device__": "remove it before a function; in Metal, a variable in global memory is declared device",
    "__shared__": "in Metal, write threadgroup",
    "__syncthreads": "in Metal, write threadgroup_barrier(mem_flags::mem_threadgroup)",
    "barrier": "in Metal, write threadgroup_barrier(mem_flags::mem_threadgroup)",
    "threadIdx": "add a parameter uint3 t [[thread_position_in_threadgroup]]",
    "blockIdx": "add a parameter uint3 g [[threadgroup_position_in_grid]]",
    "blockDim": "add a parameter uint3 n [[threads_per_threadgroup]]",
    "gridDim": "add a parameter uint3 n [[threadgroups_per_grid]]",
}


def _unknown_name_hint(match: re.Match[str]) -> str:
    """Return the hint for an unknown name, or an empty string."""
    name = next(g for g in match.groups() if g)
    if name in _FOREIGN:
        return _FOREIGN[name]
    if name in _METAL_NAMES:
        return "start the cell with: #include <metal_stdlib>  and  using namespace metal;"
    if "did you mean" in match.string:
        return ""
    import difflib

    similar = difflib.get_close_matches(name, [*SCALARS, *sorted(_METAL_NAMES)], n=1, cutoff=0.75)
    return f"did you mean '{similar[0]}'?" if similar else ""


def _signatures_hint(match: re.Match[str]) -> str:
    """Return the hint for arguments that fit no overload: Metal's declarations, if the function is Metal's."""
    name = match[1]
    functions = [entry for entry in lookup(name) if entry.kind == "function"]
    if not functions:
        return f"check the number and types of the arguments of '{name}'"
    signatures = " or ".join(dict.fromkeys(entry.signatures[0] for entry in functions))
    letters = "; or ".join(dict.fromkeys(entry.letters for entry in functions if entry.letters))
    verb = "it is declared" if all(len(entry.signatures) == 1 for entry in functions) else "one of its declarations is"
    return f"{verb} {signatures}{f', {letters}' if letters else ''} (MSL {functions[0].section})"


# A hint, or the function that makes it from the pattern's match.
_HINTS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"use of undeclared identifier '(\w+)'|unknown type name '(\w+)'|no template named '(\w+)'", _unknown_name_hint),
    (r"no member named '(\w+)' in namespace 'metal'", _unknown_name_hint),
    (r"cannot combine with previous '\w+' declaration specifier",
     "two types in a row: a name that Metal reserves, such as half, cannot be used; choose another"),
    (r"expected ';'", "add the missing ';'"),
    (r"expected '\(' after 'if'", "write if (i < n) { … }; to choose between two values write i < n ? a : b"),
    (r"expected '\(' after 'for'", "write for (uint k = 0; k < n; ++k) { … }"),
    (r"expected '\(' after 'while'", "write while (i < n) { … }"),
    (r"indirection requires pointer operand",
     "*p dereferences a pointer; for a power write x * x or pow(x, y), since there is no **"),
    (rf"member reference base type {_POINTER}",
     "a pointer has elements, p[i], but no members; pass a buffer's length as a parameter: constant uint& n"),
    (r"left operand of comma operator has no effect",
     "x[row, column] is x[column] here: write x[row * columns + column]"),
    (r"(?:no viable conversion|invalid operands).*'(?:metal::)?simd_vote'",
     "read the votes as bits, one per lane: uint(simd_vote::vote_t(vote)) (MSL 6.9.2)"),
    (r"did you mean '([^']+)'", r"did you mean '\1'?"),
    (r"cannot initialize .* changes address space|changing address space|which changes address space",
     ("the address spaces differ: give the pointer or reference the address space of what it points to "
      "(device, constant, threadgroup or thread)")),
    (r"cannot assign to .* const-qualified|read-only",
     "it is read-only: write device in place of constant, or remove const (MSL 4.2)"),
    (r"call to '(\w+)' is ambiguous",
     r"give the arguments of '\1' the same type: 0.0 for float, half(0.5) for half, 1u or uint(i) for uint"),
    (r"(?:cannot (?:in|de)crement value|invalid operands|no viable conversion).*\batomic<",
     ("an atomic is read by atomic_load_explicit(&a, memory_order_relaxed) and changed only by functions: "
      "atomic_fetch_add_explicit(&a, 1, memory_order_relaxed) (MSL 6.15)")),
    (r"no viable overloaded '(?:[-+*/%&|^]|<<|>>)?='",
     ("the two sides have no such operator; an atomic is changed by functions alone: "
      "atomic_store_explicit, atomic_fetch_add_explicit (MSL 6.15)")),
    (r"explicit instantiation of '(\w+)' does not refer to a function template",
     (r"the declaration does not match template '\1': repeat its parameters with these arguments substituted, or "
      r"write decltype(\1<T>) \1<T>")),
    (r"(?:no viable conversion|incompatible type).*(?:\bvec<|(?:float|half|int|short|char|long)[234]\b)",
     "a vector converts to no number or other width: take a component (v.x, v.xy), or build one: float3(v, 0)"),
    (r"chosen constructor is explicit in copy-initialization", "name the type: bfloat4(…) or S(…) in place of {…}"),
    (r"no matching function for call to '(\w+)'", _signatures_hint),
    (r"non-void function does not return a value", "end every path with a return: without one the value is undefined"),
    (r"void function '\w+' should not return a value", "write return; alone: a kernel writes its results to buffers"),
    (r"non-void function '\w+' should return a value", "write a value after return"),
    (r"cannot be narrowed", "braces do not narrow: convert explicitly, as in float(x)"),
    (r"result of an assignment as a condition", "write == to compare, or one more pair of parentheses to assign"),
    (r"equality comparison result unused", "write = to assign"),
    (r"variable '(\w+)' is uninitialized", r"give '\1' a value where it is declared"),
    (r"expected '\)'|expected '\]'|expected '\}'", "a bracket is not closed"),
)  # fmt: skip


def reword(message: str) -> str:
    """Return the compiler's message in Metal's words."""
    refusal = _refusal(message)
    if refusal:
        return refusal[0]
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return _SUGGESTED.sub(_suggestion, free_words(message))


def free_words(text: str) -> str:
    """Return a text with OpenCL's words as the author wrote them, which ``target/words.h`` prefixes by ``$``."""
    return re.sub(rf"\$({_opencl_words()})\b", r"\1", text) if "$" in text else text


@functools.cache
def _opencl_words() -> str:
    words = re.findall(r"^#define (\w+) \$\1$", (TARGET / "words.h").read_text(encoding="utf-8"), re.MULTILINE)
    return "|".join(words)


def _refusal(message: str) -> tuple[str, str] | None:
    """Return the error in Metal's words and its hint, if Metal's compiler refuses the same text."""
    outside = answer(message)
    if outside:
        return outside
    for pattern, refusal, hint in _REFUSALS:
        match = re.search(pattern, message)
        if match:
            return match.expand(refusal), match.expand(hint)
    return None


_SUGGESTED = re.compile(r"'(\w+)'; did you mean '(.*)'\?$")


def _suggestion(match: re.Match[str]) -> str:
    """Keep a suggestion unless it is one of metalnb's own names, or the unknown name only needs its header included."""
    name, suggested = match.groups()
    useless = suggested.startswith("$") or name == suggested or name in _METAL_NAMES
    return f"'{name}'" if useless else match[0]


def hint_for(message: str) -> str:
    """Return the hint for a message, or an empty string."""
    refusal = _refusal(message)
    if refusal:
        return refusal[1]
    for pattern, hint in _HINTS:
        match = re.search(pattern, message)
        if match is None or "'$" in match[0]:
            continue
        text = match.expand(hint) if isinstance(hint, str) else hint(match)
        if text:
            return text
    return ""
