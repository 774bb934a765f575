//! Remote fences. One is in flight at a time: its parameters sit in `ORDER`, its targets take themselves out of `WAITING`.
//!
//! A hart that waits, for its turn or for its targets, serves its own mailbox meanwhile; so two harts that fence each
//! other both get through.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustsbi::{Fence, HartMask, SbiRet};

use super::{csr, mailbox};

/// Ranges of more pages than this are fenced as a whole address space: one flush costs less than so many single ones.
const MAX_SINGLE_PAGES: usize = 16;
const PAGE: usize = 4096;

/// What a fence covers.
#[derive(Clone, Copy)]
pub enum Order {
    /// Instruction fetches see earlier stores.
    Instructions,
    /// Translations of a range; size 0 or `usize::MAX` is everything.
    Translations { start: usize, size: usize },
}

static TURN: AtomicBool = AtomicBool::new(false);
static WAITING: AtomicUsize = AtomicUsize::new(0);
static KIND: AtomicUsize = AtomicUsize::new(0);
static START: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);

fn perform(order: Order) {
    match order {
        // SAFETY: fences order memory and drop cached translations of S and U; M runs untranslated.
        Order::Instructions => unsafe { core::arch::asm!("fence.i", options(nostack)) },
        Order::Translations { start, size } => {
            let whole = size == 0 || size > MAX_SINGLE_PAGES * PAGE || start.checked_add(size).is_none();
            if whole {
                // SAFETY: as above.
                unsafe { core::arch::asm!("sfence.vma", options(nostack)) }
                return;
            }
            for page in (start & !(PAGE - 1)..start + size).step_by(PAGE) {
                // SAFETY: as above.
                unsafe { core::arch::asm!("sfence.vma {}", in(reg) page, options(nostack)) }
            }
        }
    }
}

/// Performs the fence in flight on this hart.
pub fn obey(hart: usize) {
    let order = match KIND.load(Ordering::Relaxed) {
        0 => Order::Instructions,
        _ => Order::Translations { start: START.load(Ordering::Relaxed), size: SIZE.load(Ordering::Relaxed) },
    };
    perform(order);
    WAITING.fetch_and(!(1 << hart), Ordering::Release);
}

/// Fences on all harts of `targets` (a bit mask), the caller's included if named, and returns when all have done it.
pub fn everywhere(targets: usize, order: Order) {
    let own = csr::read!("mhartid");
    if targets & 1 << own != 0 {
        perform(order);
    }
    let others = targets & !(1 << own);
    if others == 0 {
        return;
    }
    while TURN.swap(true, Ordering::Acquire) {
        mailbox::serve_if_asked(own);
    }
    match order {
        Order::Instructions => KIND.store(0, Ordering::Relaxed),
        Order::Translations { start, size } => {
            KIND.store(1, Ordering::Relaxed);
            START.store(start, Ordering::Relaxed);
            SIZE.store(size, Ordering::Relaxed);
        }
    }
    // The posts below release these stores to the targets; partner: the acquire in `mailbox::serve`.
    WAITING.store(others, Ordering::Relaxed);
    mailbox::each(others).for_each(mailbox::ask_fence);
    while WAITING.load(Ordering::Acquire) != 0 {
        mailbox::serve_if_asked(own);
    }
    TURN.store(false, Ordering::Release);
}

/// SBI remote fence extension.
pub struct RemoteFence;

impl RemoteFence {
    fn select_and_fence(mask: HartMask, order: Order) -> SbiRet {
        match mailbox::select(mask) {
            Some(harts) => {
                everywhere(harts, order);
                SbiRet::success(0)
            }
            None => SbiRet::invalid_param(),
        }
    }
}

impl Fence for RemoteFence {
    fn remote_fence_i(&self, mask: HartMask) -> SbiRet {
        Self::select_and_fence(mask, Order::Instructions)
    }

    fn remote_sfence_vma(&self, mask: HartMask, start: usize, size: usize) -> SbiRet {
        Self::select_and_fence(mask, Order::Translations { start, size })
    }

    /// Fences all address spaces: harts of this class do not tag translations, and more is allowed.
    fn remote_sfence_vma_asid(&self, mask: HartMask, start: usize, size: usize, _: usize) -> SbiRet {
        Self::select_and_fence(mask, Order::Translations { start, size })
    }
}
