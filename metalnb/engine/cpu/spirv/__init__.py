"""Passes over SPIR-V: a module's words come in, a module with the same results goes out.

Each pass works around one weakness of clang's SPIR-V back end or of the CPU runtime's compiler and says which;
``pass_table`` lists them in one table. `rewritten`, which `cpu_engine.CpuEngine` calls between clang and the device's
compiler, parses a module once, lets every pass change it, and writes it once; ``module`` knows how a module is laid
out, ``opcodes`` what each instruction's operands are. A pass knows no kernel, no engine and no OpenCL, and may change a
kernel's speed but never its answer.
"""
