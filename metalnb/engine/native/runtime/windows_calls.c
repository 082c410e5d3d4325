// What the compiler calls by itself when it writes code for Windows, and Windows' own library does not have.
#include "dispatch.h"

// Before a function takes more than a page of stack (its size is in rax) each page is touched in its turn: the system
// gives a thread the next one only then. No register changes.
__asm__(".globl ___chkstk_ms\n___chkstk_ms:\n"
        "pushq %rcx\n pushq %rax\n leaq 24(%rsp), %rcx\n"
        "1: cmpq $4096, %rax\n jb 2f\n subq $4096, %rcx\n orb $0, (%rcx)\n subq $4096, %rax\n jmp 1b\n"
        "2: subq %rax, %rcx\n orb $0, (%rcx)\n popq %rax\n popq %rcx\n ret\n");

double ldexp(double, int);
double sin(double);
double cos(double);
float sinf(float);
float cosf(float);
HIDDEN float ldexpf(float x, int k) { return (float)ldexp(x, k); }
HIDDEN void sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
HIDDEN void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
