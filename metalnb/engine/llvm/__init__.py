"""LLVM's text, as clang prints it: types and their layout, functions, blocks and instructions with named operands.

``llvm_reader`` turns a module's text into the records of ``instructions``, by the syntax in ``instruction_syntax``;
``llvm_types`` knows sizes and offsets, ``constant_values`` the bytes of constants. Nothing here knows an engine. The
text is read without LLVM's own library, which would tie the project to the one version that a Python binding is built
for, while clang comes from another wheel.
"""
