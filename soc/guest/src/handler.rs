//! A user-interrupt handler in assembly that records what it saw. `uscratch` points to the hart's [`Record`].

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the handler saw and how it is to act. Atomics because the handler runs between any two instructions.
#[repr(C)]
pub struct Record {
    saved: [AtomicU64; 2],
    /// Entries.
    pub entries: AtomicU64,
    /// `ucause` of the last entry.
    pub cause: AtomicU64,
    /// `utval` of the last entry.
    pub value: AtomicU64,
    /// `uepc` of the last entry.
    pub pc: AtomicU64,
    /// `ustatus` inside the last entry.
    pub status: AtomicU64,
    /// All bits that `uipi.read` gave, ORed.
    pub bits: AtomicU64,
    /// `uipi.read` from this entry on; earlier entries return without it.
    pub read_from: AtomicU64,
    /// After this many entries the handler returns with user interrupts off.
    pub give_up: AtomicU64,
}

global_asm!(
    r#"
    .text
    .balign 256
    .globl guest_user_handler
guest_user_handler:
    csrrw   t0, 0x040, t0
    sd      t1, 0(t0)
    sd      t2, 8(t0)
    ld      t1, 16(t0)
    addi    t1, t1, 1
    sd      t1, 16(t0)
    csrr    t2, 0x042
    sd      t2, 24(t0)
    csrr    t2, 0x043
    sd      t2, 32(t0)
    csrr    t2, 0x041
    sd      t2, 40(t0)
    csrr    t2, 0x000
    sd      t2, 48(t0)
    ld      t2, 64(t0)
    bltu    t1, t2, 1f
    csrci   0x044, 1
    .insn r 0x7b, 6, 1, t2, x0, x0
    ld      t1, 56(t0)
    or      t1, t1, t2
    sd      t1, 56(t0)
1:  ld      t1, 16(t0)
    ld      t2, 72(t0)
    bltu    t1, t2, 2f
    csrci   0x000, 0x10
2:  ld      t1, 0(t0)
    ld      t2, 8(t0)
    csrrw   t0, 0x040, t0
    .word   0x00200073
"#
);

unsafe extern "C" {
    fn guest_user_handler();
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl Record {
    /// A record with everything 0.
    pub const fn new() -> Self {
        Self {
            saved: [AtomicU64::new(0), AtomicU64::new(0)],
            entries: AtomicU64::new(0),
            cause: AtomicU64::new(0),
            value: AtomicU64::new(0),
            pc: AtomicU64::new(0),
            status: AtomicU64::new(0),
            bits: AtomicU64::new(0),
            read_from: AtomicU64::new(0),
            give_up: AtomicU64::new(0),
        }
    }

    /// Forgets what was seen; the handler reads from the first entry and never gives up.
    pub fn reset(&self) {
        for word in [&self.entries, &self.cause, &self.value, &self.pc, &self.status, &self.bits, &self.read_from] {
            word.store(0, Relaxed);
        }
        self.give_up.store(u64::MAX, Relaxed);
    }

    /// Value for `uscratch`.
    pub fn address(&self) -> u64 {
        (&raw const *self).addr() as u64
    }
}

/// Value for `utvec`; 256-byte aligned.
pub fn vector() -> u64 {
    guest_user_handler as *const () as u64
}
