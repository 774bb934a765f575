//! CLINT: software interrupts between harts and the timer compare registers.
//!
//! `mtime` is not stored: it is simulated time divided by the tick. A compare register schedules one event. The supervisor timers
//! of the Sstc extension, whose compare registers are CSRs, are driven from here as well.

use crate::board::TICK;
use crate::config::MAX_HARTS;
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use crate::hart::csr::irq;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

const MSIP: u64 = 0;
const MTIMECMP: u64 = 0x4000;
const MTIME: u64 = 0xBFF8;

/// The block.
#[derive(Serialize, Deserialize)]
pub struct Clint {
    software: [bool; MAX_HARTS],
    compare: [u64; MAX_HARTS],
    /// `stimecmp` of each hart; none where it has no effect.
    supervisor_compare: [Option<u64>; MAX_HARTS],
    harts: usize,
}

/// Tokens of supervisor timers; those of the machine timers are below.
const SUPERVISOR: u64 = 1 << 8;

/// Token of the supervisor timer of `hart`.
pub fn supervisor_token(hart: usize) -> u64 {
    SUPERVISOR | hart as u64
}

/// `mtime` at `now`.
pub fn ticks(now: SimTime) -> u64 {
    now.as_ps() / TICK.as_ps()
}

impl Clint {
    /// A CLINT in reset: no software interrupt, compare registers at their maximum.
    pub fn new(harts: usize) -> Self {
        Self {
            software: [false; MAX_HARTS],
            compare: [u64::MAX; MAX_HARTS],
            supervisor_compare: [None; MAX_HARTS],
            harts,
        }
    }

    /// Sets the supervisor timer of `hart`; an event with [`supervisor_token`] makes it count.
    pub fn set_supervisor_timer(&mut self, hart: usize, compare: Option<u64>) {
        self.supervisor_compare[hart] = compare;
    }

    /// Drives the line of a timer; asks for an event with `token` if it is not yet due.
    fn update(cx: &mut dyn Context, due: u64, (hart, line): (usize, u32), token: u64) {
        let now = cx.now();
        cx.hart_line(hart, line, ticks(now) >= due);
        // What is due is not asked for again.
        let ahead = if ticks(now) < due { due.checked_mul(TICK.as_ps()) } else { None };
        cx.alarm(token, ahead.map_or(SimTime::END, SimTime::from_ps));
    }

    fn word(&mut self, offset: u64, now: SimTime) -> Option<(Register, u64)> {
        match offset {
            MSIP..MTIMECMP => {
                let hart = (offset / 4) as usize;
                (hart < self.harts).then(|| (Register::Software(hart), u64::from(self.software[hart])))
            }
            MTIMECMP..MTIME => {
                let hart = ((offset - MTIMECMP) / 8) as usize;
                (hart < self.harts).then(|| (Register::Compare(hart), self.compare[hart]))
            }
            _ if (MTIME..MTIME + 8).contains(&offset) => Some((Register::Time, ticks(now))),
            _ => None,
        }
    }
}

enum Register {
    Software(usize),
    Compare(usize),
    Time,
}

impl Device for Clint {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if size < 4 {
            return Err(BusError::Size);
        }
        let now = cx.now();
        Ok(match self.word(offset, now) {
            Some((Register::Software(_), value)) => value,
            Some((_, value)) if size == 8 => value,
            Some((_, value)) => value >> (8 * (offset & 4)) & 0xFFFF_FFFF,
            None => 0,
        })
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size < 4 {
            return Err(BusError::Size);
        }
        let now = cx.now();
        match self.word(offset, now) {
            Some((Register::Software(hart), _)) => {
                self.software[hart] = value & 1 != 0;
                cx.hart_line(hart, irq::MSI, self.software[hart]);
            }
            Some((Register::Compare(hart), old)) => {
                let shift = 8 * (offset & 4);
                self.compare[hart] =
                    if size == 8 { value } else { old & !(0xFFFF_FFFF << shift) | (value & 0xFFFF_FFFF) << shift };
                Self::update(cx, self.compare[hart], (hart, irq::MTI), hart as u64);
            }
            // `mtime` is simulated time and cannot be set.
            Some((Register::Time, _)) | None => {}
        }
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        let hart = (token % SUPERVISOR) as usize;
        if token >= SUPERVISOR {
            // Off is never due; a compare in the past is due at once.
            Self::update(cx, self.supervisor_compare[hart].unwrap_or(u64::MAX), (hart, irq::STI), token);
        } else {
            let due = ticks(cx.now()) >= self.compare[hart];
            cx.hart_line(hart, irq::MTI, due);
        }
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;

    #[test]
    fn compare_schedules_one_event() {
        let (mut clint, mut cx) = (Clint::new(2), Bench::default());
        clint.write(&mut cx, MTIMECMP + 8, 8, 5).unwrap();
        assert_eq!(cx.alarms.get(&1), Some(&SimTime::from_ns(500)));
        assert!(cx.hart_lines.contains(&(1, irq::MTI, false)));
        cx.now = SimTime::from_ns(500);
        clint.event(&mut cx, 1);
        assert!(cx.hart_lines.contains(&(1, irq::MTI, true)));
        clint.write(&mut cx, MTIMECMP + 8, 8, u64::MAX).unwrap();
        assert!(cx.hart_lines.contains(&(1, irq::MTI, false)));
        assert_eq!(cx.alarms.get(&1), Some(&SimTime::END), "never");
    }

    #[test]
    fn halves_and_time() {
        let (mut clint, mut cx) = (Clint::new(1), Bench::default());
        clint.write(&mut cx, MTIMECMP, 4, 0x1234).unwrap();
        clint.write(&mut cx, MTIMECMP + 4, 4, 1).unwrap();
        assert_eq!(clint.read(&mut cx, MTIMECMP, 8), Ok(0x1_0000_1234));
        cx.now = SimTime::from_us(1000);
        assert_eq!(clint.read(&mut cx, MTIME, 8), Ok(10_000));
        assert_eq!(clint.read(&mut cx, MTIME + 4, 4), Ok(0));
        assert_eq!(clint.read(&mut cx, 4 * 7, 4), Ok(0));
        assert_eq!(clint.read(&mut cx, MTIME, 2), Err(BusError::Size));
    }

    #[test]
    fn software_interrupt() {
        let (mut clint, mut cx) = (Clint::new(2), Bench::default());
        clint.write(&mut cx, 4, 4, 3).unwrap();
        assert_eq!(clint.read(&mut cx, 4, 4), Ok(1));
        assert!(cx.hart_lines.contains(&(1, irq::MSI, true)));
    }
}
