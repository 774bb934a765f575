//! What one hart asks of another: one word of request bits per hart, and the machine software interrupt that says "look".
//!
//! The sender sets bits (release) before it raises the interrupt; the receiver takes the interrupt back before it takes
//! the bits (acquire), so a request that comes in between raises the interrupt again.

use core::sync::atomic::{AtomicUsize, Ordering};

use firmware::board::MAX_HARTS;
use rustsbi::{HartMask, Ipi, SbiRet};

use super::start::board;
use super::{clint, csr, hsm, rfence};

/// Raise the supervisor software interrupt.
const INTERRUPT: usize = 1 << 0;
/// Do the remote fence that waits in `rfence`.
const FENCE: usize = 1 << 1;

static REQUESTS: [AtomicUsize; MAX_HARTS] = [const { AtomicUsize::new(0) }; MAX_HARTS];

/// Wakes `hart` without a request, so that it looks at its state.
pub fn wake(hart: usize) {
    clint::raise(hart);
}

fn post(hart: usize, request: usize) {
    REQUESTS[hart].fetch_or(request, Ordering::Release);
    clint::raise(hart);
}

/// Asks `hart` for the fence that waits in `rfence`.
pub fn ask_fence(hart: usize) {
    post(hart, FENCE);
}

/// Gives `hart` a supervisor software interrupt.
pub fn interrupt(hart: usize) {
    post(hart, INTERRUPT);
}

/// Does what other harts asked of this one, if they did; for loops that wait with interrupts off.
pub fn serve_if_asked(hart: usize) {
    if REQUESTS[hart].load(Ordering::Relaxed) != 0 {
        serve(hart);
    }
}

/// Does what other harts asked of this one.
pub fn serve(hart: usize) {
    clint::acknowledge(hart);
    let requests = REQUESTS[hart].swap(0, Ordering::Acquire);
    if requests & INTERRUPT != 0 {
        csr::set!("mip", csr::interrupt::SSI);
    }
    if requests & FENCE != 0 {
        rfence::obey(hart);
    }
}

/// The running harts that an SBI hart mask selects; `None` if it names a hart that the board does not have.
pub fn select(mask: HartMask) -> Option<usize> {
    let (bits, base) = mask.into_inner();
    let named = if base == HartMask::<usize>::IGNORE_MASK {
        board().harts
    } else if bits == 0 {
        0
    } else if base < usize::BITS as usize && bits.leading_zeros() as usize >= base {
        bits << base
    } else {
        return None;
    };
    (named & !board().harts == 0).then(|| named & hsm::started())
}

/// The harts of a bit mask.
pub fn each(mut mask: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let hart = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(hart)
    })
}

/// SBI inter-processor interrupt extension.
pub struct Interrupts;

impl Ipi for Interrupts {
    fn send_ipi(&self, mask: HartMask) -> SbiRet {
        let Some(harts) = select(mask) else {
            return SbiRet::invalid_param();
        };
        let own = csr::read!("mhartid");
        for hart in each(harts) {
            if hart == own {
                csr::set!("mip", csr::interrupt::SSI);
            } else {
                interrupt(hart);
            }
        }
        SbiRet::success(0)
    }
}
