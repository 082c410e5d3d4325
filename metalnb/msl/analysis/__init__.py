"""A parsed cell comes in; a `Reflection` goes out: its kernels, structs, function constants, and warnings.

Questions of meaning are answered here, from clang's syntax tree and never from the text: what a kernel does with its
buffers, whether it uses SIMD-groups, and, in `rules`, what the language forbids and clang does not know.
"""
