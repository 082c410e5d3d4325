"""LLVM IR, as clang prints it: types and their layout, functions, blocks and instructions with named operands.

``llvm_reader`` turns a module's text into the records of ``instructions``, by the syntax in ``instruction_syntax``;
``llvm_types`` computes sizes and offsets, ``constant_values`` the bytes of constants, and ``control_flow`` dominators
and loops. Nothing here depends on an engine. The text is parsed without LLVM's library: its Python bindings are built
for one version of LLVM, while clang comes from another wheel.
"""
