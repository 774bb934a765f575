//! UINTC, the user-interrupt controller: 512 receivers, each a set of 64 pending bits posted to one hart.
//!
//! Per receiver 32 bytes: SEND (0), LOW (8), HIGH (16), ACTIVE (24); only aligned 8-byte accesses. The line of a hart is the
//! OR over its receivers of "active and something pending"; it is a level, nothing remembers a missed edge.
//!
//! With [`UserInterrupts::Latch`] the controller behaves as the one of the QEMU model that came before: each post to an active receiver,
//! and each activation of one with something pending, sets a latch in the hart, which stays until software clears it. A handler that
//! is right on both clears first and reads then; this is to test handlers with.

use crate::config::{MAX_HARTS, UserInterrupts};
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use crate::hart::csr::irq;
use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// Number of receivers.
pub const RECEIVERS: usize = 512;
/// Bytes of the register window.
pub const WINDOW_BYTES: u64 = 32 * RECEIVERS as u64;

const SEND: u64 = 0x00;
const LOW: u64 = 0x08;
const HIGH: u64 = 0x10;
const ACTIVE: u64 = 1;
const MODE: u64 = 2;

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Receiver {
    active: bool,
    mode: bool,
    hart: u16,
    pending: u64,
}

/// The controller.
#[derive(Serialize, Deserialize)]
pub struct Uintc {
    #[serde(with = "array::boxed")]
    receivers: Box<[Receiver; RECEIVERS]>,
    /// Per hart, how many receivers ask for it.
    asking: [u32; MAX_HARTS],
    harts: usize,
    kind: UserInterrupts,
    /// Harts that were given something new since the lines were last driven.
    news: [bool; MAX_HARTS],
}

impl Uintc {
    /// A controller in reset for a machine of `harts` harts.
    pub fn new(harts: usize, kind: UserInterrupts) -> Self {
        Self {
            receivers: Box::new([Receiver::default(); RECEIVERS]),
            asking: [0; MAX_HARTS],
            harts,
            kind,
            news: [false; MAX_HARTS],
        }
    }

    /// The level of hart `hart`'s line.
    pub fn line(&self, hart: usize) -> bool {
        self.asking.get(hart).is_some_and(|&count| count > 0)
    }

    /// Ors `bits` into the pending bits of `receiver`. Receivers beyond the table are ignored.
    pub fn post(&mut self, receiver: usize, bits: u64) {
        self.change(receiver, |r| r.pending |= bits);
    }

    /// Reads and clears the pending bits of `receiver`; 0 beyond the table.
    pub fn take(&mut self, receiver: usize) -> u64 {
        let mut taken = 0;
        self.change(receiver, |r| taken = core::mem::take(&mut r.pending));
        taken
    }

    /// Lets `receiver` ask for its hart, or not.
    pub fn set_active(&mut self, receiver: usize, active: bool) {
        self.change(receiver, |r| r.active = active);
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Receiver)) {
        let Some(receiver) = self.receivers.get_mut(index) else { return };
        let asks = |r: &Receiver| (r.active && r.pending != 0).then_some(usize::from(r.hart));
        let (before, pending) = (asks(receiver), receiver.pending);
        change(receiver);
        let after = asks(receiver);
        if let Some(hart) = after.filter(|&hart| hart < self.harts)
            && (before != after || pending != receiver.pending)
        {
            self.news[hart] = true;
        }
        for (hart, up) in [(before, false), (after, true)] {
            // A hart id that names no hart asserts nothing.
            if let Some(hart) = hart.filter(|&hart| hart < self.harts) {
                if up {
                    self.asking[hart] += 1;
                } else {
                    self.asking[hart] -= 1;
                }
            }
        }
    }

    /// Drives the lines of all harts; where they set latches, up only and only with news.
    pub fn drive_lines(&mut self, mut set: impl FnMut(usize, bool)) {
        for hart in 0..self.harts {
            let news = core::mem::take(&mut self.news[hart]);
            match self.kind {
                UserInterrupts::Level => set(hart, self.line(hart)),
                UserInterrupts::Latch if news => set(hart, true),
                UserInterrupts::Latch => {}
            }
        }
    }

    fn drive(&mut self, cx: &mut dyn Context) {
        self.drive_lines(|hart, level| cx.hart_line(hart, irq::USI, level));
    }
}

impl Device for Uintc {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if size != 8 || offset >= WINDOW_BYTES {
            return Err(BusError::Size);
        }
        let index = (offset / 32) as usize;
        let receiver = self.receivers[index];
        Ok(match offset % 32 {
            SEND => 0,
            LOW => {
                let flag = |set: bool, bit: u64| if set { bit } else { 0 };
                flag(receiver.active, ACTIVE) | flag(receiver.mode, MODE) | u64::from(receiver.hart) << 16
            }
            HIGH => {
                let taken = self.take(index);
                self.drive(cx);
                taken
            }
            _ => u64::from(receiver.active),
        })
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size != 8 || offset >= WINDOW_BYTES {
            return Err(BusError::Size);
        }
        let index = (offset / 32) as usize;
        match offset % 32 {
            SEND if value < 64 => self.post(index, 1 << value),
            SEND => {}
            LOW => self.change(index, |r| {
                r.active = value & ACTIVE != 0;
                r.mode = value & MODE != 0;
                r.hart = (value >> 16) as u16;
            }),
            HIGH => self.post(index, value),
            _ => self.set_active(index, value & 1 != 0),
        }
        self.drive(cx);
        Ok(())
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;

    #[test]
    fn level_follows_active_and_pending() {
        let mut uintc = Uintc::new(2, UserInterrupts::Level);
        let mut cx = Bench::default();
        let base = 32 * 7;
        uintc.write(&mut cx, base, 8, 9).unwrap();
        assert!(!uintc.line(1));
        uintc.write(&mut cx, base + LOW, 8, 1 << 16 | MODE | ACTIVE).unwrap();
        assert_eq!(cx.hart_lines, [(0, irq::USI, false), (1, irq::USI, true)].into());
        assert_eq!(uintc.read(&mut cx, base + LOW, 8), Ok(1 << 16 | 3));
        assert_eq!(uintc.read(&mut cx, base + 24, 8), Ok(1));
        assert_eq!(uintc.read(&mut cx, base + HIGH, 8), Ok(1 << 9));
        assert_eq!(uintc.read(&mut cx, base + HIGH, 8), Ok(0));
        assert!(!uintc.line(1));
        uintc.write(&mut cx, base + HIGH, 8, 5).unwrap();
        assert!(uintc.line(1));
        uintc.write(&mut cx, base + 24, 8, 0).unwrap();
        assert!(!uintc.line(1));
    }

    #[test]
    fn two_receivers_of_one_hart() {
        let mut uintc = Uintc::new(1, UserInterrupts::Level);
        for receiver in [1, 2] {
            uintc.set_active(receiver, true);
            uintc.post(receiver, 1);
        }
        uintc.take(1);
        assert!(uintc.line(0));
        uintc.take(2);
        assert!(!uintc.line(0));
    }

    #[test]
    fn a_latch_is_set_by_news_and_never_cleared() {
        let mut uintc = Uintc::new(2, UserInterrupts::Latch);
        let mut driven = |act: &mut dyn FnMut(&mut Uintc)| {
            act(&mut uintc);
            let mut lines = Vec::new();
            uintc.drive_lines(|hart, level| lines.push((hart, level)));
            lines
        };
        assert_eq!(driven(&mut |uintc| uintc.post(3, 1)), [], "not active");
        assert_eq!(driven(&mut |uintc| uintc.set_active(3, true)), [(0, true)]);
        assert_eq!(driven(&mut |uintc| uintc.post(3, 1)), [], "nothing new");
        assert_eq!(driven(&mut |uintc| uintc.post(3, 2)), [(0, true)]);
        assert_eq!(driven(&mut |uintc| assert_eq!(uintc.take(3), 3)), []);
    }

    #[test]
    fn refused_and_ignored() {
        let mut uintc = Uintc::new(2, UserInterrupts::Level);
        let mut cx = Bench::default();
        assert_eq!(uintc.read(&mut cx, LOW, 4), Err(BusError::Size));
        assert_eq!(uintc.write(&mut cx, WINDOW_BYTES, 8, 0), Err(BusError::Size));
        uintc.write(&mut cx, SEND, 8, 64).unwrap();
        assert_eq!(uintc.read(&mut cx, HIGH, 8), Ok(0));
        uintc.write(&mut cx, LOW, 8, 9 << 16 | 1).unwrap();
        uintc.write(&mut cx, SEND, 8, 3).unwrap();
        assert!((0..MAX_HARTS).all(|hart| !uintc.line(hart)), "hart 9 of 2 asserts nothing");
        assert_eq!(uintc.read(&mut cx, HIGH, 8), Ok(8), "but keeps the bit");
    }
}
