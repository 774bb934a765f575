//! What the threads of these tests execute. Handlers have t0 for themselves and keep account in s registers: s11 entries, s9 entries
//! without a bit, s10 the bits. Threads begin with `enable`: s0 is the handler.

use core::arch::{asm, global_asm};

use sel4_conformance::server::actor::Stub;

global_asm!(
    r#"
    .option arch, +a
    .equ    USTATUS, 0x000
    .equ    UIE, 0x004
    .equ    UTVEC, 0x005
    .equ    UIP, 0x044
    .macro  uipi_send index
    .insn   r 0x7b, 6, 0, x0, \index, x0
    .endm
    .macro  uipi_read bits
    .insn   r 0x7b, 6, 1, \bits, x0, x0
    .endm
    .macro  uipi_write bits
    .insn   r 0x7b, 6, 2, x0, \bits, x0
    .endm
    .macro  uipi_activate
    .insn   r 0x7b, 6, 3, x0, x0, x0
    .endm
    .macro  uipi_deactivate
    .insn   r 0x7b, 6, 4, x0, x0, x0
    .endm
    .macro  uret
    .word   0x00200073
    .endm
    .macro  yield
    li      a7, -7
    ecall
    .endm
    .macro  enable
    csrw    UTVEC, s0
    csrwi   UIE, 1
    uipi_activate
    csrwi   USTATUS, 1
    .endm

    .text
    .balign 4
ui_handler:
    csrci   UIP, 1
    uipi_read t0
    or      s10, s10, t0
    addi    s11, s11, 1
    bnez    t0, 1f
    addi    s9, s9, 1
1:  uret

    // Another one: s8 counts too.
    .balign 4
ui_second_handler:
    addi    s8, s8, 1
    j       ui_handler

    // The time of the entry in s7.
    .balign 4
ui_time_handler:
    rdtime  s7
    j       ui_handler

    // Gives the hart away in the middle; ustatus before in s2 and after in s3.
    .balign 4
ui_slow_handler:
    csrr    s2, USTATUS
    yield
    csrr    s3, USTATUS
    j       ui_handler

    // Counts bits in memory too, at s4.
    .balign 4
ui_counting_handler:
    csrci   UIP, 1
    uipi_read t0
    addi    s11, s11, 1
    beqz    t0, 1f
    li      t0, 1
    amoadd.d x0, t0, (s4)
1:  uret

    // Until a bit has come, without a system call.
ui_until:
    enable
0:  beqz    s10, 0b
    ebreak

    // s1 times around; the first s5 of them with the first handler, the rest with the second.
ui_yields:
    enable
0:  beqz    s1, 2f
    bne     s1, s5, 1f
    la      s0, ui_second_handler
    csrw    UTVEC, s0
1:  addi    s1, s1, -1
    yield
    j       0b
2:  csrr    s6, USTATUS
    ebreak

    // Sends s2 s1 times, a turn each.
ui_send:
    uipi_send s2
    yield
    addi    s1, s1, -1
    bnez    s1, ui_send
    ebreak

    // Sends a0 for ever, with a pause of s1 turns in between.
ui_flood:
    uipi_send a0
    mv      s2, s1
0:  beqz    s2, ui_flood
    addi    s2, s2, -1
    j       0b

    // Counts s1 down, whatever comes in between.
ui_work:
    enable
0:  addi    s1, s1, -1
    bnez    s1, 0b
    ebreak

    // The same, inactive; entries since then in s11, what has come meanwhile in s3.
ui_quiet_work:
    uipi_deactivate
    li      s11, 0
    csrw    UTVEC, s0
    csrwi   UIE, 1
    csrwi   USTATUS, 1
0:  addi    s1, s1, -1
    bnez    s1, 0b
    uipi_read s3
    ebreak

    // Receives on a0, with user interrupts enabled if s0 is not 0.
ui_doze:
    beqz    s0, 1f
    enable
1:  li      a7, -5
    ecall
    ebreak

    // Without a receiver: tries to raise an interrupt for itself. What it can read back in s1, s2, s3.
ui_plain:
    enable
    csrsi   UIP, 1
    li      s4, -1
    uipi_write s4
    csrr    s1, UIE
    csrr    s2, UIP
    uipi_read s3
    li      s4, 500
0:  addi    s4, s4, -1
    bnez    s4, 0b
    ebreak

    // With a receiver: every bit that it can make itself.
ui_self_made:
    enable
    csrsi   UIP, 1
    li      s4, -1
    uipi_write s4
    ebreak

    // s1 times: sends a0 and waits until the word at s4 changes, at most s5 looks. s1 is what is left.
ui_ping:
0:  beqz    s1, 3f
    ld      s6, 0(s4)
    mv      s7, s5
    uipi_send a0
1:  ld      s8, 0(s4)
    bne     s8, s6, 2f
    addi    s7, s7, -1
    bnez    s7, 1b
    ebreak
2:  addi    s1, s1, -1
    j       0b
3:  ebreak

    // Yields for ever.
ui_peer:
    yield
    j       ui_peer
"#
);

macro_rules! stubs {
    ($($name:ident = $symbol:ident;)*) => {
        unsafe extern "C" {
            $(static $symbol: u8;)*
        }
        $(pub fn $name() -> Stub {
            Stub(&raw const $symbol as u64)
        })*
    };
}

stubs! {
    handler = ui_handler;
    time_handler = ui_time_handler;
    slow_handler = ui_slow_handler;
    counting_handler = ui_counting_handler;
    until = ui_until;
    yields = ui_yields;
    send = ui_send;
    flood = ui_flood;
    work = ui_work;
    quiet_work = ui_quiet_work;
    doze = ui_doze;
    plain = ui_plain;
    self_made = ui_self_made;
    ping = ui_ping;
    peer = ui_peer;
}

/// `uipi.send` by the root task itself.
pub fn uipi_send(index: u64) {
    // SAFETY: touches no memory; which receiver gets a bit is up to the sender table, which the kernel fills.
    unsafe { asm!(".option arch, +a", ".insn r 0x7b, 6, 0, x0, {}, x0", in(reg) index, options(nostack)) };
}
