//! Ways of waiting for the transmit channel.

use core::arch::global_asm;
use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::Poll;
use drivers::axinic::{AxiNic, Event};
use drivers::mmio::Mmio;
use soc_guest::{set_csr, write_csr};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Poll,
    Interrupt,
    Future,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Poll, Self::Interrupt, Self::Future];

    pub fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interrupt => "interrupt",
            Self::Future => "future",
        }
    }
}

/// PLIC source of the transmit channel, and the registers of hart 0's machine context.
const SOURCE: u32 = 13;
const PRIORITY: usize = 0x0C00_0000 + 4 * SOURCE as usize;
const ENABLE: usize = 0x0C00_2000;
const THRESHOLD: usize = 0x0C20_0000;
const CLAIM: usize = 0x0C20_0004;
const MEIE: u64 = 1 << 11;
const MIE: u64 = 1 << 3;

/// Interrupts taken.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

global_asm!(
    r#"
    // Claims the interrupt and counts it; who waits for the count completes it.
    .balign 64
    .globl nic_interrupt
nic_interrupt:
    addi    sp, sp, -32
    sd      t0, 0(sp)
    sd      t1, 8(sp)
    li      t0, {claim}
    lw      t1, 0(t0)
    la      t0, {count}
    ld      t1, 0(t0)
    addi    t1, t1, 1
    sd      t1, 0(t0)
    ld      t0, 0(sp)
    ld      t1, 8(sp)
    addi    sp, sp, 32
    mret
"#,
    claim = const CLAIM,
    count = sym INTERRUPTS,
);

unsafe extern "C" {
    fn nic_interrupt();
}

fn write(register: usize, value: u32) {
    // SAFETY: a PLIC register of the board.
    unsafe { (register as *mut u32).write_volatile(value) };
}

/// Lets the channel's interrupt through to the handler.
pub fn set_up() {
    write(PRIORITY, 1);
    write(ENABLE, 1 << SOURCE);
    write(THRESHOLD, 0);
    write_csr!("mtvec", nic_interrupt as *const () as u64);
    set_csr!("mie", MEIE);
    set_csr!("mstatus", MIE);
}

/// Returns when the channel has counted to its threshold.
pub fn completed(mode: Mode, nic: &mut AxiNic<Mmio>) {
    match mode {
        Mode::Poll => while nic.tx_event() != Event::Packets {},
        Mode::Interrupt => {
            let count = &INTERRUPTS;
            while count.load(Relaxed) == 0 {
                core::hint::spin_loop();
            }
            count.store(0, Relaxed);
            nic.tx_event();
            write(CLAIM, SOURCE);
        }
        Mode::Future => {
            let mut done = core::pin::pin!(core::future::poll_fn(|_| match nic.tx_event() {
                Event::Packets => Poll::Ready(()),
                _ => Poll::Pending,
            }));
            let mut context = core::task::Context::from_waker(core::task::Waker::noop());
            while done.as_mut().poll(&mut context).is_pending() {}
        }
    }
}
