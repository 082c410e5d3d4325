"""Passes over SPIR-V: a module's words come in, a module with the same results goes out.

Each pass works around one weakness of clang's SPIR-V back end or of the CPU runtime's compiler, says which, and is a
function from bytes to bytes; ``module`` has what they share. `cpu_engine.CpuEngine` runs them after clang and before
the device's compiler. A pass knows no kernel, no engine and no OpenCL, and may change a kernel's speed but never its
answer.
"""
