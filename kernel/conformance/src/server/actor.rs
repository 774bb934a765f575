//! Threads that execute one of the stubs below and then fault. What a thread shall do is in its registers, what happened to it too, so
//! it needs no stack and no code of its own; its last instruction is an `ebreak`, which tells the root task that it got there.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use super::machine::Machine;
use super::start::{Buffer, MESSAGE, NB_RECV, RECV};
use crate::System;
use crate::number::{Invocation::*, object, slot};

global_asm!(
    r#"
    .text
    .option push
    .option norvc
    .option arch, +a
    .globl stub_ecall, stub_load, stub_store, stub_jump, stub_zero, stub_break, stub_current, stub_peer, stub_waiter, stub_spin, stub_gap
stub_ecall:
    ecall
stub_break:
    ebreak
stub_store:
    sd      zero, 0(a0)
    ebreak
stub_load:
    ld      a1, 0(a0)
    ebreak
stub_jump:
    jr      a0
stub_zero:
    .word   0
    ebreak

    // Appends a letter to the log: a count and its bytes.
    .macro  mark letter
    la      t0, {log}
    li      t1, 1
    amoadd.d t1, t1, (t0)
    add     t0, t0, t1
    li      t2, \letter
    sb      t2, 8(t0)
    .endm

    // Makes the system call s3 with capability s0 and info s2 between C and c, yields, C, yields, C.
stub_current:
    mark    'C'
    mv      a0, s0
    mv      a1, s2
    mv      a7, s3
    ecall
    mark    'c'
    li      a7, -7
    ecall
    mark    'C'
    li      a7, -7
    ecall
    mark    'C'
    ebreak

    // P for each turn.
stub_peer:
    mark    'P'
    li      a7, -7
    ecall
    j       stub_peer

    // V for each signal of notification s0; without waiting first if s1 is 0.
stub_waiter:
    beqz    s1, 1f
0:  mv      a0, s0
    li      a7, -5
    ecall
1:  mark    'V'
    j       0b

    // Spins.
stub_spin:
    j       stub_spin

    // Reads the time until it jumps by more than a0; the jump is in a1.
stub_gap:
    rdtime  t0
0:  rdtime  t1
    sub     a1, t1, t0
    mv      t0, t1
    bltu    a1, a0, 0b
    ebreak
    .option pop
"#,
    log = sym LOG,
);

/// Code of a thread.
#[derive(Clone, Copy)]
pub struct Stub(
    /// Its first instruction.
    pub u64,
);

macro_rules! stubs {
    ($($name:ident = $symbol:ident, $about:literal;)*) => {
        unsafe extern "C" {
            $(static $symbol: u8;)*
        }
        impl Stub {
            $(#[doc = $about]
            pub fn $name() -> Self {
                Self(&raw const $symbol as u64)
            })*
        }
    };
}

stubs! {
    ecall = stub_ecall, "`ecall` with the registers given, then `ebreak`.";
    load = stub_load, "Loads from a0.";
    store = stub_store, "Stores to a0.";
    jump = stub_jump, "Jumps to a0.";
    zero = stub_zero, "The instruction of zeros.";
    ebreak = stub_break, "`ebreak`.";
    current = stub_current, "Order of threads: makes a call, yields twice.";
    peer = stub_peer, "Order of threads: yields for ever.";
    spin = stub_spin, "Spins for ever.";
    gap = stub_gap, "Waits until it is held up for more than a0 ticks of the time base: a1 says how many.";
    waiter = stub_waiter, "Order of threads: waits for signals.";
}

/// What the threads of `order.rs` have done, in order.
#[repr(C)]
pub struct Log(UnsafeCell<[u64; 8]>);

// SAFETY: the stubs append by an atomic addition; the root task reads and clears while none of them runs (it has a higher priority and
// all are on its core).
unsafe impl Sync for Log {}

static LOG: Log = Log(UnsafeCell::new([0; 8]));

/// Takes the log: letters as words, and how many.
pub fn take_log() -> ([u64; 16], usize) {
    // SAFETY: no stub runs while the root task does; volatile, because they write by assembly.
    let words = unsafe {
        let words = LOG.0.get().read_volatile();
        LOG.0.get().write_volatile([0; 8]);
        words
    };
    let mut letters = [0; 16];
    let count = (words[0] as usize).min(letters.len());
    for (index, letter) in letters.iter_mut().enumerate().take(count) {
        *letter = words[1 + index / 8] >> (index % 8 * 8) & 0xFF;
    }
    (letters, count)
}

/// Pages of the image that are IPC buffers of threads.
#[repr(C, align(4096))]
struct Pages(UnsafeCell<[[u64; 512]; ACTORS]>);

// SAFETY: reached through `Buffer`, volatile, and by the kernel.
unsafe impl Sync for Pages {}

/// Most threads at a time.
pub const ACTORS: usize = 4;

static PAGES: Pages = Pages(UnsafeCell::new([[0; 512]; ACTORS]));

/// Index of a register in `seL4_UserContext`.
#[allow(missing_docs, reason = "the names are the registers'")]
pub mod register {
    pub const PC: usize = 0;
    pub const RA: usize = 1;
    pub const SP: usize = 2;
    pub const S0: usize = 4;
    pub const S1: usize = 5;
    pub const S2: usize = 6;
    pub const S3: usize = 7;
    pub const A0: usize = 16;
    pub const A1: usize = 17;
    pub const A2: usize = 18;
    pub const A6: usize = 22;
    pub const A7: usize = 23;
}

/// A thread.
#[derive(Clone, Copy)]
pub struct Actor {
    /// Slot of its TCB.
    pub tcb: u64,
    /// Its IPC buffer.
    pub buffer: Buffer,
}

/// Priority of threads that nothing else is said about.
pub const PRIORITY: u64 = 100;

/// Where the faults of threads arrive, and the capability by which they go there.
#[derive(Clone, Copy)]
pub struct Faults {
    /// Where the root task receives them.
    pub endpoint: u64,
    /// The capability that threads have, badge [`FAULT_BADGE`].
    pub handler: u64,
}

/// Badge of the fault handler.
pub const FAULT_BADGE: u64 = 0xBAD;

impl Faults {
    /// An endpoint for faults.
    pub fn new(m: &mut Machine, block: u64) -> Self {
        let endpoint = m.make(block, object::ENDPOINT, 0);
        let handler = m.fresh();
        m.prepare(slot::CNODE, CNodeMint, &[handler, 64, endpoint, 64, 15, FAULT_BADGE], &[slot::CNODE]);
        Self { endpoint, handler }
    }

    /// Waits for the next fault. As words: badge, then the message.
    pub fn next(self, m: &mut Machine) -> Message {
        Message::of(m, RECV, self.endpoint)
    }

    /// Whether no fault is there.
    pub fn none(self, m: &mut Machine) -> bool {
        let [badge, ..] = m.send(NB_RECV, self.endpoint, 0, [0; 4]);
        badge == 0
    }
}

/// A received message.
pub struct Message {
    /// Message info as the kernel wrote it.
    pub info: u64,
    words: [u64; 16],
}

impl Message {
    /// Receives by `number`.
    pub fn of(m: &mut Machine, number: i64, endpoint: u64) -> Self {
        let [badge, info, first @ ..] = m.send(number, endpoint, 0, [0; 4]);
        let mut words = [badge; 16];
        words[1..5].copy_from_slice(&first);
        words[5..].iter_mut().zip(MESSAGE + 4..).for_each(|(word, index)| *word = m.buffer.get(index));
        Self { info, words }
    }

    /// Label; badge and message words.
    pub fn content(&self) -> (u64, &[u64]) {
        let length = (self.info & 0x7F) as usize;
        (self.info >> 12, &self.words[..(1 + length).min(self.words.len())])
    }

    /// Message word `index`, below 15.
    pub fn word(&self, index: usize) -> u64 {
        self.words[1 + index]
    }
}

impl Actor {
    /// Thread `index` below [`ACTORS`], not started, with the root task's CSpace.
    pub fn new(m: &mut Machine, block: u64, faults: Faults, index: usize) -> Self {
        Self::with_space(m, block, index, faults.handler, (slot::CNODE, 64 - m.info.cnode_size_bits))
    }

    /// With a CSpace (its root, and its guard as `TCB_Configure` takes it) and the address of the fault handler in it.
    ///
    /// # Panics
    /// If there is no such index.
    pub fn with_space(m: &mut Machine, block: u64, index: usize, handler: u64, (root, guard): (u64, u64)) -> Self {
        let tcb = m.make(block, object::TCB, 0);
        let address = &raw const PAGES as u64 + 4096 * index as u64;
        assert!(index < ACTORS);
        // SAFETY: a page for this purpose.
        let buffer = unsafe { Buffer::at(address as *mut u64) };
        // The image starts with its first frame.
        let frame = m.info.user_image_frames.start + (address - 0x1_0000) / 4096;
        m.prepare(tcb, TCBConfigure, &[handler, guard, 0, address], &[root, slot::VSPACE, frame]);
        let actor = Self { tcb, buffer };
        actor.set_priority(m, PRIORITY);
        actor
    }

    /// Sets the priority.
    pub fn set_priority(self, m: &mut Machine, priority: u64) {
        m.prepare(self.tcb, TCBSetPriority, &[priority], &[slot::TCB]);
    }

    /// Starts it with these registers, the others 0.
    pub fn start(self, m: &mut Machine, stub: Stub, registers: &[(usize, u64)]) {
        self.load(m, stub, registers);
        m.prepare(self.tcb, TCBResume, &[], &[]);
    }

    /// Writes registers without starting it.
    pub fn load(self, m: &mut Machine, stub: Stub, registers: &[(usize, u64)]) {
        let mut words = [0; 34];
        words[1] = 32;
        words[2 + register::PC] = stub.0;
        registers.iter().for_each(|&(register, value)| words[2 + register] = value);
        m.prepare(self.tcb, TCBWriteRegisters, &words, &[]);
    }

    /// A register of it.
    pub fn register(self, m: &mut Machine, register: usize) -> u64 {
        m.invoke(self.tcb, TCBReadRegisters, &[0, 32], &[]).words[register]
    }

    /// Makes a system call: number, capability, info, message words. It faults when it has returned.
    pub fn call(self, m: &mut Machine, number: i64, capability: u64, info: u64, words: [u64; 4]) {
        use register::{A0, A1, A2, A7};
        let [w0, w1, w2, w3] = words;
        let registers =
            [(A7, number as u64), (A0, capability), (A1, info), (A2, w0), (A2 + 1, w1), (A2 + 2, w2), (A2 + 3, w3)];
        self.start(m, Stub::ecall(), &registers);
    }
}

/// Lets every thread of a priority above 1 run until it waits: the lowest one faults when nobody else is ready. Takes thread 3.
///
/// # Panics
/// If another thread faults meanwhile.
pub fn settle(m: &mut Machine, block: u64, faults: Faults) {
    let last = Actor::new(m, block, faults, ACTORS - 1);
    last.set_priority(m, 1);
    last.start(m, Stub::ebreak(), &[]);
    let message = faults.next(m);
    assert_eq!(message.word(0), Stub::ebreak().0, "another thread faulted first");
}
