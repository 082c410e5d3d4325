// glibc's vector mathematics under the names that clang knows it by. Of clang's tables of such libraries the one for AMD's
// names the most functions; each name here jumps to the function of glibc's libmvec of the same shape. What a kernel does
// not call, the linker leaves out.

#define JUMP(name, to) \
    __asm__(".section .text." name ",\"ax\",@progbits\n.globl " name "\n.hidden " name "\n" name ":\n" \
            "jmp *" to "@GOTPCREL(%rip)\n");
#define FLOATS(f) \
    JUMP("amd_vrs4_" f "f", "_ZGVbN4v_" f "f") \
    JUMP("amd_vrs8_" f "f", "_ZGVdN8v_" f "f") \
    JUMP("amd_vrs16_" f "f", "_ZGVeN16v_" f "f")
#define DOUBLES(f) \
    JUMP("amd_vrd2_" f, "_ZGVbN2v_" f) \
    JUMP("amd_vrd4_" f, "_ZGVdN4v_" f) \
    JUMP("amd_vrd8_" f, "_ZGVeN8v_" f)

FLOATS("acos") FLOATS("asin") FLOATS("atan") FLOATS("cos") FLOATS("cosh") FLOATS("sin") FLOATS("tan")
FLOATS("tanh") DOUBLES("sin")
JUMP("amd_vrs4_powf", "_ZGVbN4vv_powf")
JUMP("amd_vrs8_powf", "_ZGVdN8vv_powf")
JUMP("amd_vrs16_powf", "_ZGVeN16vv_powf")
