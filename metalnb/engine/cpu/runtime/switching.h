// Fibers' stacks: switching the processor between them, and registering them with the system.
#pragma once
#include "dispatch.h"

#if _WIN32
#define SHADOW 32  // bytes above the return address that belong to the callee
#else
#define SHADOW 0
#endif
// Functions on Windows must preserve further registers; a compiler for Windows saves them around the call of a function
// with another calling convention.
#if __x86_64__
__attribute__((naked, noinline, sysv_abi)) static void switch_stack(void** from, void* to) {
    __asm__("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
            "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
            "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
            "popq %rcx\n jmpq *%rcx");  // not `ret`, whose target the processor would expect to be its caller
}
static void* new_stack(address top, void (*start)(void)) {
    void** stack = (void**)((top & ~(address)15) - 16 - SHADOW);
    stack[0] = (void*)start;  // a fiber starts with its stack as it is after a call
    for (int i = 1; i <= 6; ++i) stack[-i] = 0;
    return stack - 6;
}
#elif __aarch64__
__attribute__((naked, noinline)) static void switch_stack(void** from, void* to) {
    __asm__("sub sp, sp, #160\n stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
            "stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n stp d8, d9, [sp, #96]\n"
            "stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
            "mov x2, sp\n str x2, [x0]\n mov sp, x1\n"
            "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
            "ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n"
            "ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n add sp, sp, #160\n br x30");
}
static void* new_stack(address top, void (*start)(void)) {
    void** stack = (void**)((top & ~(address)15) - 160);
    for (int i = 0; i < 20; ++i) stack[i] = 0;
    stack[11] = (void*)start;  // x30
    return stack;
}
#else
#error "fibers are written for x86-64 and aarch64"
#endif

// When an exception is raised, Windows looks up the stack's bounds in the thread's block. While fibers run, the bounds
// span all their stacks, so no fiber has to set them again.
#if _WIN32
#define BEGIN_STACKS(w) \
    const stack_bounds saved = bounds(); \
    set_bounds((stack_bounds){(w) + ARENA, w, w})
#define END_STACKS() set_bounds(saved)
typedef struct { address base, limit, allocation; } stack_bounds;
static inline stack_bounds bounds(void) {
    stack_bounds b;
    __asm volatile("movq %%gs:8, %0\n movq %%gs:16, %1\n movq %%gs:0x1478, %2"
                   : "=&r"(b.base), "=&r"(b.limit), "=&r"(b.allocation));
    return b;
}
static inline void set_bounds(stack_bounds b) {
    __asm volatile("movq %0, %%gs:8\n movq %1, %%gs:16\n movq %2, %%gs:0x1478"
                   : : "r"(b.base), "r"(b.limit), "r"(b.allocation) : "memory");
}
#else
#define BEGIN_STACKS(w)
#define END_STACKS()
#endif
