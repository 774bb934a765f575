# First instructions of each hart, trap entry and exit. All that cannot be Rust.
#
# sscratch: the context of the thread while this hart runs in U, zero while it runs in the kernel.
# tp: core number (0 = the core that booted); it lies at the top word of the kernel stack, next to where sp starts.

# Link-time optimisation assembles this without the target's features.
.option arch, +m, +a, +c, +zicsr, +zifencei

.equ OFFSET, {kernel_vaddr} - {kernel_paddr}
# V R W A D G, and with X
.equ PTE_RW, 0xe7
.equ PTE_RWX, 0xef

# --- The boot header: abi::image::BootHeader -----------------------------------------------------------------------
.section .header, "ax"
.globl boot_header
boot_header:
    .option push
    .option norvc
    j boot
    nop
    .option pop
    .dword {magic}
    .word {version}
    .word {flags}
    .dword __kernel_size
    .dword 0, 0, 0, 0                   # root task: filled in by the image builder
    .word {label_table}
    .word {root_cnode_bits}
    .word {timer_tick_ms}
    .word {time_slice}
    .word 0, 0

# --- Boot ------------------------------------------------------------------------------------------------------------
# Turns translation on and continues at \target with the same register values: the fetch after the write of satp has
# no translation at its physical address, traps, and lands at stvec, which holds the virtual address of \target.
.macro enable_mmu target
    la t0, \target
    li t1, OFFSET
    add t0, t0, t1
    csrw stvec, t0
    la t0, {root_table}
    srli t0, t0, 12
    li t1, 8 << 60
    or t0, t0, t1
    sfence.vma
    csrw satp, t0
    unimp                               # not reached
.endm

.section .text.boot, "ax"
boot:                                   # a0 = hart, a1 = device tree, translation off
    csrw sie, zero
    csrw sscratch, zero
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, (t0)
    addi t0, t0, 8
    j 1b

2:  la t0, {root_table}                 # direct map: 254 pages of 1 GiB from entry 256
    li t1, 256 * 8
    add t1, t0, t1
    li t2, PTE_RW
    li t3, 254
    li t4, 1 << 28
3:  sd t2, (t1)
    addi t1, t1, 8
    add t2, t2, t4
    addi t3, t3, -1
    bnez t3, 3b

    la t1, {kernel_table}               # the GiB of the kernel: 512 pages of 2 MiB
    li t2, ({kernel_paddr} & ~0x3fffffff) >> 2 | PTE_RW
    li t3, 512
    li t4, 1 << 19
4:  sd t2, (t1)
    addi t1, t1, 8
    add t2, t2, t4
    addi t3, t3, -1
    bnez t3, 4b

    la t1, {kernel_table}               # the kernel's own pages are executable
    la t2, boot_header
    la t3, __kernel_end
    srli t2, t2, 21
    andi t4, t2, 511
    slli t4, t4, 3
    add t1, t1, t4
5:  slli t4, t2, 19
    ori t4, t4, PTE_RWX & 0x7ff
    sd t4, (t1)
    addi t1, t1, 8
    addi t2, t2, 1
    slli t4, t2, 21
    bltu t4, t3, 5b

    la t1, {kernel_table}               # entered twice: direct map and kernel window
    srli t1, t1, 2
    ori t1, t1, 1
    li t2, (256 + ({kernel_paddr} >> 30)) * 8
    add t2, t0, t2
    sd t1, (t2)
    li t2, 510 * 8
    add t2, t0, t2
    sd t1, (t2)
    la t1, {device_table}               # kernel devices: filled in later
    srli t1, t1, 2
    ori t1, t1, 1
    li t2, 511 * 8
    add t2, t0, t2
    sd t1, (t2)

    enable_mmu 6f
.align 2
6:  la t0, trap_entry
    csrw stvec, t0
    la sp, {stacks}
    li t0, {stack_bytes} - 16
    add sp, sp, t0
    sd zero, (sp)
    li tp, 0
    li fp, 0
    call {boot_first}

.globl secondary_start
secondary_start:                        # a0 = hart (not used), a1 = kernel stack pointer with the core number in its top word
    csrw sie, zero
    csrw sscratch, zero
    enable_mmu 7f
.align 2
7:  la t0, trap_entry
    csrw stvec, t0
    mv sp, a1
    ld tp, (sp)
    li fp, 0
    call {boot_other}

# --- Traps -----------------------------------------------------------------------------------------------------------
.section .text.trap, "ax"
# Saves the registers of the thread and takes this core's stack: a2 = its context. For any other trap than an ecall it jumps to 1:
# with scause in t1.
.macro enter_kernel
    csrrw sp, sscratch, sp
    beqz sp, kernel_trap
    sd x1, 1*8(sp)
    csrrw x1, sscratch, zero            # the user's sp
    sd x3, 3*8(sp)
    sd x4, 4*8(sp)
    sd x5, 5*8(sp)
    csrr x5, sepc
    sd x6, 6*8(sp)
    sd x7, 7*8(sp)
    sd x8, 8*8(sp)
    sd x9, 9*8(sp)
    sd x10, 10*8(sp)
    sd x11, 11*8(sp)
    csrr x6, scause
    sd x12, 12*8(sp)
    sd x13, 13*8(sp)
    sd x14, 14*8(sp)
    sd x15, 15*8(sp)
    sd x16, 16*8(sp)
    sd x17, 17*8(sp)
    sd x18, 18*8(sp)
    sd x19, 19*8(sp)
    sd x20, 20*8(sp)
    sd x21, 21*8(sp)
    sd x22, 22*8(sp)
    sd x23, 23*8(sp)
    sd x24, 24*8(sp)
    sd x25, 25*8(sp)
    sd x26, 26*8(sp)
    sd x27, 27*8(sp)
    sd x28, 28*8(sp)
    sd x29, 29*8(sp)
    sd x30, 30*8(sp)
    sd x31, 31*8(sp)
    sd x1, 2*8(sp)
    sd x5, 0(sp)                        # pc of the trap
    mv a2, sp
    ld sp, {kernel_stack}(a2)
    ld tp, (sp)
    li fp, 0
    li t2, 8                            # scause of an ecall from U
    bne t1, t2, 1f
    addi t0, t0, 4                      # behind the ecall
    sd t0, {next_pc}(a2)
.endm

# The functions behind take a0 and a1 of the thread, a2 = its context, a3 = number of the system call; and give the context to run.
.align 6
.globl trap_entry
trap_entry:
    enter_kernel
    addi t0, a7, 1                      # Call is -1, ReplyRecv -2
    beqz t0, 2f
    addi t0, a7, 2
    beqz t0, 3f
    addi t0, a7, 4                      # Send is -3, NBSend -4
    li t1, 1
    bleu t0, t1, 4f
    mv a3, a7
    call {system_call}
    j resume
4:  call {send}
    j resume
2:  call {call}
    j resume
3:  call {reply_recv}

.globl resume
resume:                                 # a0 = context; sp = top of this core's stack
    ld t0, {next_pc}(a0)
    sd sp, {kernel_stack}(a0)
    csrw sepc, t0
    sc.d zero, zero, (a0)               # drops a reservation of the thread that ran before; never stores: there is none for this line
    csrw sscratch, a0
    ld x1, 1*8(a0)
    ld x2, 2*8(a0)
    ld x3, 3*8(a0)
    ld x4, 4*8(a0)
    ld x5, 5*8(a0)
    ld x6, 6*8(a0)
    ld x7, 7*8(a0)
    ld x8, 8*8(a0)
    ld x9, 9*8(a0)
    ld x11, 11*8(a0)
    ld x12, 12*8(a0)
    ld x13, 13*8(a0)
    ld x14, 14*8(a0)
    ld x15, 15*8(a0)
    ld x16, 16*8(a0)
    ld x17, 17*8(a0)
    ld x18, 18*8(a0)
    ld x19, 19*8(a0)
    ld x20, 20*8(a0)
    ld x21, 21*8(a0)
    ld x22, 22*8(a0)
    ld x23, 23*8(a0)
    ld x24, 24*8(a0)
    ld x25, 25*8(a0)
    ld x26, 26*8(a0)
    ld x27, 27*8(a0)
    ld x28, 28*8(a0)
    ld x29, 29*8(a0)
    ld x30, 30*8(a0)
    ld x31, 31*8(a0)
    ld x10, 10*8(a0)
    sret
1:  mv a0, a2
    mv a1, t1
    call {trap}                         # a0 = context, a1 = scause; gives the context to run
    j resume

kernel_trap:                            # a trap out of the kernel is a bug: keep everything for the panic
    csrrw sp, sscratch, zero
    addi sp, sp, -256
    .irp number, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd x\number, \number*8(sp)
    .endr
    addi t0, sp, 256
    sd t0, 2*8(sp)
    csrr t0, sepc
    sd t0, (sp)
    mv a0, sp
    call {kernel_trap}

.globl enter_user
enter_user:                             # a0 = context, a1 = stack
    mv sp, a1
    j resume

# Traps where user interrupts are emulated: on the way back to U the thread may have to go to its handler.
.align 6
.globl trap_entry_emulating
trap_entry_emulating:
    enter_kernel
    mv a3, a7
    call {system_call_emulating}
    j resume
1:  mv a0, a2
    mv a1, t1
    call {trap_emulating}
    j resume
