//! Hart state management: which hart runs S-mode code, and how the others wait.
//!
//! ```text
//! Stopped --start (CAS by the caller)--> StartPending --the hart itself--> Started --stop--> Stopped
//! ```
//!
//! The caller writes entry and argument before the release store of `StartPending`; the hart reads them after it has seen it.

use core::sync::atomic::{AtomicUsize, Ordering};

use firmware::board::MAX_HARTS;
use rustsbi::{Hsm, SbiRet, spec::hsm::hart_state};

use super::start::{board, outside_firmware};
use super::{csr, hart, mailbox, timer};

struct Slot {
    state: AtomicUsize,
    entry: AtomicUsize,
    argument: AtomicUsize,
}

/// Between `STOPPED` and `START_PENDING` while the caller fills the slot; answered as start pending.
const CLAIMED: usize = usize::MAX;

static SLOTS: [Slot; MAX_HARTS] = [const {
    Slot { state: AtomicUsize::new(hart_state::STOPPED), entry: AtomicUsize::new(0), argument: AtomicUsize::new(0) }
}; MAX_HARTS];

unsafe extern "C" {
    /// Leaves M-mode for good (entry.S).
    fn enter_supervisor(hart: usize, argument: usize, entry: usize, stack_top: usize) -> !;
}

/// One bit per hart in the state `STARTED`.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// One bit per hart that runs S-mode code.
pub fn started() -> usize {
    STARTED.load(Ordering::Acquire)
}

fn request(hart: usize, entry: usize, argument: usize) -> bool {
    let slot = &SLOTS[hart];
    let claimed =
        slot.state.compare_exchange(hart_state::STOPPED, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if claimed {
        slot.entry.store(entry, Ordering::Relaxed);
        slot.argument.store(argument, Ordering::Relaxed);
        slot.state.store(hart_state::START_PENDING, Ordering::Release);
        mailbox::wake(hart);
    }
    claimed
}

/// Boots S-mode on this hart.
pub fn start_here(hart: usize, entry: usize, argument: usize) -> ! {
    request(hart, entry, argument);
    wait(hart)
}

/// Sleeps until somebody starts this hart, then runs S-mode code on an empty stack.
pub fn wait(hart: usize) -> ! {
    let slot = &SLOTS[hart];
    hart::prepare();
    timer::stop(hart);
    while slot.state.load(Ordering::Acquire) != hart_state::START_PENDING {
        // SAFETY: only the machine software interrupt is enabled in `mie`; a pending one makes `wfi` fall through.
        unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
        mailbox::serve(hart);
    }
    mailbox::serve(hart);
    csr::clear!("mip", csr::interrupt::SSI);
    let (entry, argument) = (slot.entry.load(Ordering::Relaxed), slot.argument.load(Ordering::Relaxed));
    slot.state.store(hart_state::STARTED, Ordering::Release);
    STARTED.fetch_or(1 << hart, Ordering::Release);
    // SAFETY: `hart_start` checked the entry; `prepare` has set `mstatus` for S; the stack is this hart's own and
    // nothing on it is used again.
    unsafe { enter_supervisor(hart, argument, entry, super::start::stack_top(hart)) }
}

/// SBI hart state management extension.
pub struct HartStates;

impl Hsm for HartStates {
    fn hart_start(&self, hart: usize, entry: usize, argument: usize) -> SbiRet {
        if hart >= MAX_HARTS || board().harts & 1 << hart == 0 {
            return SbiRet::invalid_param();
        }
        if !outside_firmware(entry, 4) {
            return SbiRet::invalid_address();
        }
        if request(hart, entry, argument) { SbiRet::success(0) } else { SbiRet::already_available() }
    }

    fn hart_stop(&self) -> SbiRet {
        let hart = csr::read!("mhartid");
        STARTED.fetch_and(!(1 << hart), Ordering::Release);
        SLOTS[hart].state.store(hart_state::STOPPED, Ordering::Release);
        wait(hart)
    }

    fn hart_get_status(&self, hart: usize) -> SbiRet {
        if hart >= MAX_HARTS || board().harts & 1 << hart == 0 {
            return SbiRet::invalid_param();
        }
        match SLOTS[hart].state.load(Ordering::Acquire) {
            CLAIMED => SbiRet::success(hart_state::START_PENDING),
            state => SbiRet::success(state),
        }
    }
}
