//! User-interrupt entry: two handlers, both correct whether the interrupt is a level or a latch.
//!
//! The order is the same in both: clear the latch (`uip.USIP`), *then* read and clear the pending bits. The other order
//! would lose a send that falls between the two on hardware where only software clears the latch. A read of zero bits is
//! legal and harmless.
//!
//! * [`collect`]: ORs the bits into an [`Inbox`] and returns. Two registers are touched, so an interrupt costs some fifteen
//!   instructions; the program looks at the inbox when it likes. This is what an executor wants.
//! * [`call`]: saves all caller-saved integer registers on an aligned frame and calls a function with the bits.
//!
//! `uscratch` holds the inbox's or the function's address, so that each thread has its own. Neither handler touches
//! floating-point registers (guests are soft-float), and both leave user interrupts disabled until `uret`.
//!
//! What a function under [`call`] may do is what a signal handler may do: no allocation, no lock of the interrupted code,
//! no panic; set atomic flags, nothing more.

use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(target_arch = "riscv64", target_feature = "f"))]
compile_error!("`call` saves no floating-point registers: build guests for soft float");

#[cfg(target_arch = "riscv64")]
use crate::csr::{UIE, USCRATCH, USTATUS, UTVEC};

/// Where the [`collect`] handler of one thread leaves the bits.
#[repr(C)]
pub struct Inbox {
    bits: AtomicU64,
    interrupts: AtomicU64,
}

const _: () = assert!(core::mem::offset_of!(Inbox, bits) == 0 && core::mem::offset_of!(Inbox, interrupts) == 8);

impl Inbox {
    /// An empty one.
    pub const fn new() -> Self {
        Self { bits: AtomicU64::new(0), interrupts: AtomicU64::new(0) }
    }

    /// Takes the bits that came since the last call.
    #[inline] // polled: a load and a branch if nothing came
    pub fn take(&self) -> u64 {
        match self.bits.load(Ordering::Relaxed) {
            0 => 0,
            // Acquire: the handler's read of the receiver made visible what preceded the sends.
            _ => self.bits.swap(0, Ordering::Acquire),
        }
    }

    /// How many interrupts were taken.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes this thread's user interrupts leave their bits in `inbox`, and enables them in `uie` and `ustatus`.
///
/// One inbox belongs to one thread: the handler counts without an atomic operation.
pub fn collect(inbox: &'static Inbox) {
    install::<Collect>(core::ptr::from_ref(inbox).expose_provenance());
}

/// Makes this thread's user interrupts call `handler` with their bits, and enables them in `uie` and `ustatus`.
///
/// # Safety
/// `handler` runs between any two instructions of this thread: it must not panic, allocate, take a lock or borrow
/// anything that the interrupted code may hold.
pub unsafe fn call(handler: extern "C" fn(bits: u64)) {
    install::<Call>(handler as usize);
}

/// Stops user interrupts of this thread: disables them in `ustatus` and `uie` and forgets the handler.
pub fn remove() {
    #[cfg(target_arch = "riscv64")]
    // SAFETY: after the first two instructions no handler runs any more; the third is the reset value.
    unsafe {
        core::arch::asm!(
            "csrci {ustatus}, 1",
            "csrci {uie}, 1",
            "csrw {uscratch}, x0",
            ustatus = const USTATUS,
            uie = const UIE,
            uscratch = const USCRATCH,
        )
    }
}

trait Handler {
    /// What goes to `utvec`: 4-byte aligned, hence direct mode.
    fn address() -> usize;
}

struct Collect;
struct Call;

fn install<H: Handler>(scratch: usize) {
    let handler = H::address();
    #[cfg(target_arch = "riscv64")]
    // SAFETY: user interrupts are off while the two words are set, so no handler sees one without the other. Handler and
    // inbox live as long as the program (`'static`, code).
    unsafe {
        core::arch::asm!(
            "csrci {ustatus}, 1",
            "csrw {uscratch}, {scratch}",
            "csrw {utvec}, {handler}",
            "csrsi {uie}, 1",
            "csrsi {ustatus}, 1",
            scratch = in(reg) scratch,
            handler = in(reg) handler,
            ustatus = const USTATUS,
            uie = const UIE,
            uscratch = const USCRATCH,
            utvec = const UTVEC,
        )
    }
    #[cfg(not(target_arch = "riscv64"))]
    let _ = (handler, scratch);
}

#[cfg(target_arch = "riscv64")]
mod riscv {
    use super::{Call, Collect, Handler};
    use crate::csr::{UIP, USCRATCH};

    impl Handler for Collect {
        fn address() -> usize {
            collect_entry as *const () as usize
        }
    }

    impl Handler for Call {
        fn address() -> usize {
            call_entry as *const () as usize
        }
    }

    // The psABI has no red zone and keeps sp 16-byte aligned at every instruction, so a frame may be pushed anywhere.
    #[unsafe(naked)]
    unsafe extern "C" fn collect_entry() {
        core::arch::naked_asm!(
            ".balign 4",
            "addi sp, sp, -16",
            "sd   t0, 0(sp)",
            "sd   t1, 8(sp)",
            "csrci {uip}, 1",
            ".insn r 0x7b, 6, 1, t0, x0, x0", // t0 = uipi.read
            "csrr t1, {uscratch}",
            ".option push",
            ".option arch, +a", // module-level assembly does not inherit the target's features
            "amoor.d.aqrl x0, t0, (t1)",
            ".option pop",
            "ld   t0, 8(t1)", // only this handler writes the count, and it does not nest
            "addi t0, t0, 1",
            "sd   t0, 8(t1)",
            "ld   t0, 0(sp)",
            "ld   t1, 8(sp)",
            "addi sp, sp, 16",
            ".insn i 0x73, 0, x0, x0, 2", // uret
            uip = const UIP,
            uscratch = const USCRATCH,
        )
    }

    #[unsafe(naked)]
    unsafe extern "C" fn call_entry() {
        core::arch::naked_asm!(
            ".balign 4",
            "addi sp, sp, -128",
            "sd   ra,   0(sp)",
            "sd   t0,   8(sp)",
            "sd   t1,  16(sp)",
            "sd   t2,  24(sp)",
            "sd   a0,  32(sp)",
            "sd   a1,  40(sp)",
            "sd   a2,  48(sp)",
            "sd   a3,  56(sp)",
            "sd   a4,  64(sp)",
            "sd   a5,  72(sp)",
            "sd   a6,  80(sp)",
            "sd   a7,  88(sp)",
            "sd   t3,  96(sp)",
            "sd   t4, 104(sp)",
            "sd   t5, 112(sp)",
            "sd   t6, 120(sp)",
            "csrci {uip}, 1",
            ".insn r 0x7b, 6, 1, a0, x0, x0", // a0 = uipi.read
            "csrr t0, {uscratch}",
            "jalr t0",
            "ld   ra,   0(sp)",
            "ld   t0,   8(sp)",
            "ld   t1,  16(sp)",
            "ld   t2,  24(sp)",
            "ld   a0,  32(sp)",
            "ld   a1,  40(sp)",
            "ld   a2,  48(sp)",
            "ld   a3,  56(sp)",
            "ld   a4,  64(sp)",
            "ld   a5,  72(sp)",
            "ld   a6,  80(sp)",
            "ld   a7,  88(sp)",
            "ld   t3,  96(sp)",
            "ld   t4, 104(sp)",
            "ld   t5, 112(sp)",
            "ld   t6, 120(sp)",
            "addi sp, sp, 128",
            ".insn i 0x73, 0, x0, x0, 2", // uret
            uip = const UIP,
            uscratch = const USCRATCH,
        )
    }
}

#[cfg(not(target_arch = "riscv64"))]
mod host {
    use super::{Call, Collect, Handler};

    // No interrupt ever arrives here, so there is no handler to name.
    impl Handler for Collect {
        fn address() -> usize {
            0
        }
    }

    impl Handler for Call {
        fn address() -> usize {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_gives_its_bits_once() {
        let inbox = Inbox::new();
        assert_eq!(inbox.take(), 0);
        inbox.bits.fetch_or(0b101, Ordering::Relaxed);
        inbox.bits.fetch_or(1 << 63, Ordering::Relaxed);
        assert_eq!(inbox.take(), 1 << 63 | 0b101);
        assert_eq!(inbox.take(), 0);
    }

    /// One hart's side of a receiver. `latched`: only software clears `uip.USIP`; otherwise it follows the pending bits.
    #[derive(Clone, Copy)]
    struct Line {
        latched: bool,
        usip: bool,
        pending: u64,
    }

    impl Line {
        fn send(&mut self, vector: u32) {
            self.pending |= 1 << vector;
            self.usip = true;
        }
        fn raised(&self) -> bool {
            if self.latched { self.usip } else { self.pending != 0 }
        }
        fn clear(&mut self) {
            self.usip = false;
        }
        fn read(&mut self) -> u64 {
            core::mem::take(&mut self.pending)
        }
    }

    /// Vector 0 is sent, then vector 1 `at` some step of the first entry (0 before it, 3 after it). Gives the bits that were seen when
    /// no interrupt is raised any more, and the entries that found none.
    fn deliver(latched: bool, at: usize, order: [fn(&mut Line) -> u64; 2]) -> (u64, u32) {
        let mut line = Line { latched, usip: false, pending: 0 };
        line.send(0);
        let (mut seen, mut empty, mut step) = (0, 0, 0);
        let mut maybe_send = |line: &mut Line| {
            if step == at {
                line.send(1);
            }
            step += 1;
        };
        maybe_send(&mut line);
        while line.raised() {
            let mut bits = 0;
            for action in order {
                bits |= action(&mut line);
                maybe_send(&mut line);
            }
            seen |= bits;
            empty += u32::from(bits == 0);
        }
        (seen, empty)
    }

    const CLEAR: fn(&mut Line) -> u64 = |line| {
        line.clear();
        0
    };
    const READ: fn(&mut Line) -> u64 = Line::read;

    #[test]
    fn clearing_before_reading_loses_no_bit_on_latch_and_on_level() {
        for at in 0..3 {
            for latched in [false, true] {
                let (seen, empty) = deliver(latched, at, [CLEAR, READ]);
                assert_eq!(seen, 3, "sent at step {at}, latched {latched}");
                assert!(empty <= u32::from(latched), "at most one empty entry, on a latch");
            }
        }
        // The other order, with a send between the two.
        assert_eq!(deliver(false, 1, [READ, CLEAR]).0, 3);
        assert_eq!(deliver(true, 1, [READ, CLEAR]).0, 1, "a latch that is cleared last loses the wake-up");
    }

    #[test]
    fn both_handlers_clear_before_they_read_and_keep_the_stack_aligned() {
        let (code, _) = include_str!("entry.rs").split_once("#[cfg(test)]").expect("tests come last");
        let handlers: Vec<&str> = code.split("naked_asm!(").skip(1).collect();
        assert_eq!(handlers.len(), 2);
        for handler in handlers {
            let (clear, read) = (handler.find("csrci {uip}, 1"), handler.find("= uipi.read"));
            assert!(clear.is_some() && clear < read);
            let (_, frame) = handler.split_once("addi sp, sp, -").expect("it has a frame");
            let bytes: u32 = frame.split('"').next().and_then(|bytes| bytes.parse().ok()).expect("a number");
            assert!(bytes.is_multiple_of(16), "psABI: sp is 16-byte aligned at every instruction");
            assert!(handler.contains(&format!("addi sp, sp, {bytes}\"")), "and comes back");
        }
    }
}
