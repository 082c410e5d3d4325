"""Reduce a kernel's LLVM text: edits of the text, and runs of it in vector code and a thread at a time."""
