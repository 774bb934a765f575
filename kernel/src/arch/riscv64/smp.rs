//! The cores: their harts, how they are started, interrupted, and kept out of each other's way.

use core::hint::cold_path;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::config::MAX_NUM_NODES;

use super::attention::{Attention, Notice};
use super::lock::{Ticket, TicketLock};
use super::once::Once;
use super::{csr, sbi, stall};
use crate::boot::machine::Harts;
use crate::mem::Ref;
use crate::object::tcb::Tcb;

static HARTS: Once<Harts> = Once::new();
/// Number of cores beside the first, apart from `HARTS` because it is read on every kernel entry.
static OTHERS: AtomicUsize = AtomicUsize::new(0);
/// Cores that have come up.
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
/// Core 0 has finished booting: the others may take the lock.
static OPEN: AtomicBool = AtomicBool::new(false);

static KERNEL_LOCK: TicketLock = TicketLock::new();

/// Cores that the kernel runs on.
#[inline]
pub fn cores() -> usize {
    OTHERS.load(Ordering::Relaxed) + 1
}

/// Whether there is more than one core.
#[inline(always)]
pub fn several() -> bool {
    OTHERS.load(Ordering::Relaxed) != 0
}

/// The hart id of a core.
pub fn hart(core: usize) -> u16 {
    HARTS.get().map_or(0, |harts| harts.ids()[core])
}

/// Takes the kernel lock; with one core there is nothing to take.
#[inline]
pub fn lock() {
    if several() {
        KERNEL_LOCK.acquire(stall::obey);
    }
}

/// Takes the kernel lock, with several cores, if it is free; else a place in the line, which [`wait_for_lock`] must follow.
#[inline(always)]
pub fn line_up() -> Result<(), Ticket> {
    KERNEL_LOCK.line_up()
}

/// Takes the kernel lock when the turn of `ticket` comes.
pub fn wait_for_lock(ticket: Ticket) {
    KERNEL_LOCK.wait(ticket, stall::obey);
}

/// Gives the kernel lock back.
#[inline(always)]
pub fn unlock() {
    if several() {
        cold_path();
        KERNEL_LOCK.release();
    }
}

/// Whether another core waits for the kernel lock, which this one holds.
pub fn lock_is_wanted() -> bool {
    KERNEL_LOCK.is_wanted()
}

static ATTENTION: [Attention; MAX_NUM_NODES] = [const { Attention::new() }; MAX_NUM_NODES];

/// The word of this core.
pub fn own_attention() -> &'static Attention {
    &ATTENTION[super::core_number() % MAX_NUM_NODES]
}

/// The word of a core.
pub fn attention(core: usize) -> &'static Attention {
    &ATTENTION[core % MAX_NUM_NODES]
}

/// Calls the cores of `mask` (bit = core) into the kernel: by an interrupt, unless they look. Under the lock.
pub fn call(mask: usize) {
    let mut harts = 0;
    for core in (0..cores()).filter(|core| mask & 1 << core != 0) {
        let notice = attention(core).call();
        if core == super::core_number() {
            // Comes back as soon as it leaves.
            csr::set!("sip", csr::interrupt::SOFTWARE);
        } else if notice == Notice::Interrupt {
            harts |= 1 << hart(core);
        }
    }
    if harts != 0 {
        sbi::send_ipi(harts);
    }
}

/// Hands `core` a thread, if it idles. Under the lock.
#[inline(always)]
pub fn hand_over(core: usize, thread: Ref<Tcb>) -> bool {
    let notice = attention(core).hand_over(thread);
    if notice == Some(Notice::Interrupt) {
        cold_path();
        sbi::send_ipi(1 << hart(core));
    }
    notice.is_some()
}

/// The harts of all cores but this one, as a mask of hart ids.
pub fn other_harts() -> usize {
    let own = super::core_number();
    (0..cores()).filter(|&core| core != own).fold(0, |harts, core| harts | 1 << hart(core))
}

/// Tells who the cores are; core 0, before anything here is used.
pub fn init(harts: Harts) {
    OTHERS.store(harts.ids().len() - 1, Ordering::Relaxed);
    HARTS.set(harts);
}

/// Starts the other cores and waits until they spin in `wait_for_boot`.
///
/// # Panics
/// If the firmware refuses to start a hart.
pub fn start_others() {
    for core in 1..cores() {
        let started = sbi::hart_start(usize::from(hart(core)), super::secondary_entry(), super::prepare_stack(core));
        assert!(started.is_ok(), "hart {} does not start: {started:?}", hart(core));
    }
    while ARRIVED.load(Ordering::Acquire) != cores() - 1 {
        core::hint::spin_loop();
    }
}

/// A core that is not core 0 arrives, and waits for `open`.
pub fn wait_for_boot() {
    ARRIVED.fetch_add(1, Ordering::Release);
    while !OPEN.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
}

/// Whether the system has been built.
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Core 0 has built the system: the others go on.
pub fn open() {
    OPEN.store(true, Ordering::Release);
}
