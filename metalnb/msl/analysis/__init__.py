"""Turn a parsed cell into a `Reflection`: its kernels, structs, function constants, and warnings.

Semantic analysis works on clang's syntax tree, never on the text: how a kernel uses its buffers, whether it uses
SIMD-groups and, in `rules`, what MSL forbids but clang accepts.
"""
