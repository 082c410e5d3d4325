// Functions that code for Windows calls implicitly and that Windows' libraries lack.

// Before a function takes more than a page of stack (its size is in rax), each page is accessed in order, since the
// system maps a thread's next page only then. No register changes.
__asm__(".globl ___chkstk_ms\n___chkstk_ms:\n"
        "pushq %rcx\n pushq %rax\n leaq 24(%rsp), %rcx\n"
        "1: cmpq $4096, %rax\n jb 2f\n subq $4096, %rcx\n orb $0, (%rcx)\n subq $4096, %rax\n jmp 1b\n"
        "2: subq %rax, %rcx\n orb $0, (%rcx)\n popq %rax\n popq %rcx\n ret\n");
