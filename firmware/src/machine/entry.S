# Everything of the firmware that cannot be Rust: first instructions, trap entry and exit, the way down to S-mode,
# and reads on behalf of S-mode that may fault.
#
# mscratch: stack top of this hart while it runs in S or U, zero while it runs in M. So a trap out of the firmware
# itself (a bug) keeps its stack, and the panic can walk it.

# Link-time optimisation assembles this without the target's features.
.option arch, +m, +a, +c
.altmacro
.macro each_register op, base
    \op x1, 1*8(\base)
    .set register, 3
    .rept 29
    one_register \op, \base, %register
    .set register, register + 1
    .endr
.endm
.macro one_register op, base, number
    \op x\number, \number*8(\base)
.endm

.section .text.entry, "ax"
.globl _start
_start:                                 # a0 = hart, a1 = device tree; all harts
    csrw mie, zero
    csrw mscratch, zero
    la t0, trap_entry
    csrw mtvec, t0
    li t0, {max_harts}
    bgeu a0, t0, 9f                     # a hart beyond our tables sleeps for ever
    la sp, {stacks}
    addi t0, a0, 1
    li t1, {stack_bytes}
    mul t0, t0, t1
    add sp, sp, t0
    li fp, 0
    bnez a0, 3f

    la t0, __bss_start                  # hart 0 boots: clear .bss
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, (t0)
    addi t0, t0, 8
    j 1b
2:  call {boot_hart}

3:  la t0, {ready}                      # the others wait until hart 0 has read the board
4:  lw t1, (t0)
    beqz t1, 4b
    fence r, rw
    call {other_hart}

9:  wfi
    j 9b

.align 2
trap_entry:
    csrrw sp, mscratch, sp
    bnez sp, 1f
    csrrw sp, mscratch, zero            # trapped in M: stay on the stack in use
1:  addi sp, sp, -256
    each_register sd, sp
    csrrw t0, mscratch, zero            # stack pointer of S or U; 0 tells a second trap that we are in M
    bnez t0, 2f
    addi t0, sp, 256
2:  sd t0, 2*8(sp)
    mv a0, sp
    li fp, 0
    call {trap}                         # comes back only to S or U
    addi t0, sp, 256
    csrw mscratch, t0
    each_register ld, sp
    ld sp, 2*8(sp)
    mret

.globl enter_supervisor
enter_supervisor:                       # a0 = hart, a1 = argument, a2 = entry, a3 = stack top; mstatus is set
    csrw mepc, a2
    csrw mscratch, a3
    csrw satp, zero
    sfence.vma
    fence.i
    .irp register, ra, sp, gp, tp, t0, t1, t2, s0, s1, a2, a3, a4, a5, a6, a7, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6
    li \register, 0
    .endr
    mret

# Reads through the address translation and rights of the interrupted mode: a0 = address, a1 = mstatus bits to set.
# Returns a0 = value, a1 = 0, or a1 = 1 if the read trapped. mtvec points at the recovery meanwhile; mepc and mcause
# of the trap being handled are preserved.
.macro guarded_read name, load
.globl \name
\name:
    csrr t3, mepc
    csrr t4, mstatus
    la t0, 1f
    csrrw t0, mtvec, t0
    csrs mstatus, a1
    li a1, 1
    \load a0, (a0)
    li a1, 0
.align 2
1:  csrw mtvec, t0
    csrw mstatus, t4
    csrw mepc, t3
    ret
.endm
guarded_read guarded_read_half, lhu
guarded_read guarded_read_word, ld
