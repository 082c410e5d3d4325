"""Compile a unit with clang to a file for a device, for the engines that use clang.

``entry_point`` writes a unit as one source in C++ for OpenCL, with an entry point based on ``entry_point.h``;
``driver`` runs clang on it for an engine's `Target`: its flags, and the header that implements what the MSL headers
rely on. ``loop_exits`` keeps SIMD functions inside their loops. Results are cached on disk, and messages are mapped
back to the author's lines. Nothing here depends on a device.
"""
