"""LLVM's text, as clang prints it: types and their layout, functions, blocks and instructions with named operands.

``reader`` turns a module's text into records, ``types`` knows sizes and offsets, ``divisors`` makes integer division
total. Nothing here knows an engine. The text is read without LLVM's own library, which would tie the project to the one
version that a Python binding is built for, while clang comes from another wheel.
"""
