//! The legacy calls 0 to 8: one result in a0, hart masks passed by the *virtual* address of a word (0 = all harts).

use rustsbi::{HartMask, Reset, Timer, spec::srst};

use super::csr::status;
use super::finisher::SystemReset;
use super::mailbox::{self, Interrupts};
use super::rfence::{self, Order};
use super::timer::SupervisorTimer;
use super::{console, csr, trap};

/// Extension numbers (SBI 2.0, chapter 5).
mod number {
    pub const SET_TIMER: usize = 0;
    pub const CONSOLE_PUTCHAR: usize = 1;
    pub const CONSOLE_GETCHAR: usize = 2;
    pub const CLEAR_IPI: usize = 3;
    pub const SEND_IPI: usize = 4;
    pub const REMOTE_FENCE_I: usize = 5;
    pub const REMOTE_SFENCE_VMA: usize = 6;
    pub const REMOTE_SFENCE_VMA_ASID: usize = 7;
    pub const SHUTDOWN: usize = 8;
}

/// SBI_ERR_INVALID_ADDRESS as the legacy calls give it.
const INVALID_ADDRESS: usize = -5isize as usize;
const FAILED: usize = -1isize as usize;

/// Answers a legacy call, or `None` if `extension` is none.
pub fn handle(extension: usize, arguments: [usize; 6]) -> Option<usize> {
    let [a0, a1, a2, ..] = arguments;
    Some(match extension {
        number::SET_TIMER => {
            SupervisorTimer.set_timer(a0 as u64);
            0
        }
        number::CONSOLE_PUTCHAR => {
            console::exclusive(|_| console::put(a0 as u8));
            0
        }
        number::CONSOLE_GETCHAR => console::get().map_or(FAILED, usize::from),
        number::CLEAR_IPI => {
            csr::clear!("mip", csr::interrupt::SSI);
            0
        }
        number::SEND_IPI => with_harts(a0, |mask| {
            rustsbi::Ipi::send_ipi(&Interrupts, mask);
        }),
        number::REMOTE_FENCE_I => fence(a0, Order::Instructions),
        number::REMOTE_SFENCE_VMA | number::REMOTE_SFENCE_VMA_ASID => {
            fence(a0, Order::Translations { start: a1, size: a2 })
        }
        number::SHUTDOWN => SystemReset.system_reset(srst::RESET_TYPE_SHUTDOWN, srst::RESET_REASON_NO_REASON).error,
        _ => return None,
    })
}

fn fence(mask_address: usize, order: Order) -> usize {
    with_harts(mask_address, |mask| {
        if let Some(harts) = mailbox::select(mask) {
            rfence::everywhere(harts, order);
        }
    })
}

fn with_harts(mask_address: usize, act: impl FnOnce(HartMask)) -> usize {
    let mask = if mask_address == 0 {
        HartMask::all()
    } else {
        match trap::read_word(mask_address, status::MPRV) {
            Some(bits) => HartMask::from_mask_base(bits, 0),
            None => return INVALID_ADDRESS,
        }
    };
    act(mask);
    0
}
