//! ATS-INTC, the asynchronous task scheduler and interrupt controller: ready queues of an executor's tasks in hardware, and per
//! interrupt line a queue of tasks that wait for it. An interrupt moves a task to the ready queue and disturbs no hart.
//!
//! ```text
//!   ENQUEUE k ──────────────────────────▶ priority k ┐
//!   INTR ENQUEUE i ─▶ blocked on line i ─▶ priority 0 ┴─▶ DEQUEUE     one ready queue of 1024 entries per window
//!                     (gate open, line high)
//! ```
//!
//! The registers are those of the project's Rocket implementation (ATS-INTC/rocket-chip, branch v1.6), window 0 to 3; one window can be
//! mapped to one program. What that implementation leaves open is settled so: each access and each delivery is one step, a full queue
//! drops and sets a sticky flag, nothing stalls, 0 is not an entry. A line of level is delivered once per INTR ENQUEUE; used here it must be
//! switched off in the PLIC, which sees the same lines. No hart is woken: an executor polls DEQUEUE.

use super::plic::SOURCES;
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Size of the device's address range; windows beyond the last are not there.
pub const SIZE: u64 = 0x100_0000;
const WINDOWS: usize = 4;
const WINDOW_BYTES: u64 = 0x1000;
const PRIORITIES: usize = 8;
/// Entries of a ready queue, all priorities together.
const READY: usize = 1024;
/// Entries of a line's queue.
const BLOCKED: usize = 4;
/// Interrupt lines: index i is PLIC source i + 1.
const LINES: usize = SOURCES as usize;

const DEQUEUE: u64 = 0x000;
const ENQUEUE: u64 = 0x008;
const ENQUEUE_END: u64 = ENQUEUE + 8 * PRIORITIES as u64;
/// Priorities 8 to 254, which do not exist.
const NO_ENQUEUE_END: u64 = 0x800;
const INTERRUPT_ENQUEUE: u64 = 0x900;
const INTERRUPT_ENQUEUE_END: u64 = INTERRUPT_ENQUEUE + 8 * LINES as u64;
/// Something was dropped since the last read.
const OVERFLOW: u64 = 1 << 63;
/// Cycles of an access inside the device.
const ACCESS_CYCLES: u64 = 2;

#[derive(Default, Serialize, Deserialize)]
struct Window {
    queues: [VecDeque<u64>; PRIORITIES],
    overflow: bool,
}

impl Window {
    fn entries(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn push(&mut self, priority: usize, entry: u64) {
        if entry == 0 {
            return;
        }
        if self.entries() < READY {
            self.queues[priority].push_back(entry);
        } else {
            self.overflow = true;
        }
    }

    fn pop(&mut self) -> u64 {
        self.queues.iter_mut().find_map(VecDeque::pop_front).unwrap_or(0)
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Line {
    level: bool,
    gate: bool,
    blocked: VecDeque<u64>,
    overflow: bool,
}

/// The controller.
#[derive(Serialize, Deserialize)]
pub struct AtsIntc {
    windows: [Window; WINDOWS],
    lines: Vec<Line>,
}

impl Default for AtsIntc {
    /// Empty queues, closed gates.
    fn default() -> Self {
        Self { windows: Default::default(), lines: vec![Line::default(); LINES] }
    }
}

impl AtsIntc {
    /// Sets the level of the line of PLIC source `source`.
    pub fn set_source(&mut self, source: u32, level: bool) {
        let index = source as usize - 1;
        self.lines[index].level = level;
        self.deliver(index);
    }

    /// Moves a task that waits for line `index` to the ready queue if it is time.
    fn deliver(&mut self, index: usize) {
        let line = &mut self.lines[index];
        if line.gate
            && line.level
            && self.windows[0].entries() < READY
            && let Some(entry) = line.blocked.pop_front()
        {
            line.gate = false;
            self.windows[0].push(0, entry);
        }
    }

    fn block(&mut self, index: usize, entry: u64) {
        let line = &mut self.lines[index];
        if entry == 0 {
            return;
        }
        if line.blocked.len() < BLOCKED {
            line.blocked.push_back(entry);
        } else {
            line.overflow = true;
        }
        line.gate = true;
        self.deliver(index);
    }

    /// Window and offset in it of an access.
    fn decode(offset: u64, size: u8) -> Result<(usize, u64), BusError> {
        if size != 8 {
            return Err(BusError::Size);
        }
        let (window, register) = ((offset / WINDOW_BYTES) as usize, offset % WINDOW_BYTES);
        match register {
            _ if window >= WINDOWS => Err(BusError::Unmapped),
            ENQUEUE_END..NO_ENQUEUE_END => Err(BusError::Unmapped),
            _ => Ok((window, register)),
        }
    }
}

/// Reads a sticky flag, which clears it.
fn take(flag: &mut bool) -> u64 {
    if core::mem::take(flag) { OVERFLOW } else { 0 }
}

impl Device for AtsIntc {
    fn read(&mut self, _cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        let (number, register) = Self::decode(offset, size)?;
        let window = &mut self.windows[number];
        Ok(match register {
            DEQUEUE => {
                let entry = window.pop();
                // There may be room now for what could not be delivered.
                (0..LINES).for_each(|index| self.deliver(index));
                entry
            }
            ENQUEUE..ENQUEUE_END => {
                let priority = ((register - ENQUEUE) / 8) as usize;
                window.queues[priority].len() as u64 | take(&mut window.overflow)
            }
            INTERRUPT_ENQUEUE..INTERRUPT_ENQUEUE_END if number == 0 => {
                let line = &mut self.lines[((register - INTERRUPT_ENQUEUE) / 8) as usize];
                line.blocked.len() as u64
                    | u64::from(line.gate) << 8
                    | u64::from(line.level) << 9
                    | take(&mut line.overflow)
            }
            _ => 0,
        })
    }

    fn write(&mut self, _cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        let (number, register) = Self::decode(offset, size)?;
        match register {
            ENQUEUE..ENQUEUE_END => self.windows[number].push(((register - ENQUEUE) / 8) as usize, value),
            INTERRUPT_ENQUEUE..INTERRUPT_ENQUEUE_END if number == 0 => {
                self.block(((register - INTERRUPT_ENQUEUE) / 8) as usize, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn latency_cycles(&self) -> u64 {
        ACCESS_CYCLES
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;
    use proptest::prelude::*;

    struct Driver(AtsIntc, Bench);

    impl Driver {
        fn new() -> Self {
            Self(AtsIntc::default(), Bench::default())
        }
        fn read(&mut self, offset: u64) -> u64 {
            self.0.read(&mut self.1, offset, 8).unwrap()
        }
        fn write(&mut self, offset: u64, value: u64) {
            self.0.write(&mut self.1, offset, 8, value).unwrap();
        }
        fn push(&mut self, priority: u64, entry: u64) {
            self.write(ENQUEUE + 8 * priority, entry);
        }
        fn block(&mut self, line: u64, entry: u64) {
            self.write(INTERRUPT_ENQUEUE + 8 * line, entry);
        }
        fn status(&mut self, line: u64) -> u64 {
            self.read(INTERRUPT_ENQUEUE + 8 * line)
        }
        fn fetch(&mut self) -> u64 {
            self.read(DEQUEUE)
        }
        fn line(&mut self, line: u32, level: bool) {
            self.0.set_source(line + 1, level);
        }
    }

    #[test]
    fn priorities_in_order_and_first_come_first_served_inside() {
        let mut driver = Driver::new();
        for priority in (0..8).rev() {
            for turn in 1..=3 {
                driver.push(priority, 10 * (priority + 1) + turn);
            }
        }
        let expected: Vec<u64> =
            (0..8).flat_map(|priority| (1..=3).map(move |turn| 10 * (priority + 1) + turn)).collect();
        let got: Vec<u64> = (0..24).map(|_| driver.fetch()).collect();
        assert_eq!((got, driver.fetch()), (expected, 0));
        driver.push(3, 0);
        assert_eq!(driver.fetch(), 0, "0 is no entry");
    }

    #[test]
    fn a_full_ready_queue_drops_and_says_so_once() {
        let mut driver = Driver::new();
        (1..=1025).for_each(|entry| driver.push(entry % 8, entry));
        assert_eq!(driver.read(ENQUEUE), 128 | OVERFLOW);
        assert_eq!(driver.read(ENQUEUE + 8), 128);
        let got: std::collections::BTreeSet<u64> = (0..1024).map(|_| driver.fetch()).collect();
        assert_eq!((got.len(), got.last(), driver.fetch()), (1024, Some(&1024), 0));
    }

    #[test]
    fn windows_know_nothing_of_each_other() {
        let mut driver = Driver::new();
        driver.write(3 * WINDOW_BYTES + ENQUEUE, 7);
        driver.write(2 * WINDOW_BYTES + INTERRUPT_ENQUEUE, 8);
        driver.line(0, true);
        assert_eq!((driver.fetch(), driver.read(2 * WINDOW_BYTES), driver.read(3 * WINDOW_BYTES)), (0, 0, 7));
    }

    #[test]
    fn what_is_not_there_is_a_fault_or_reads_0() {
        let mut driver = Driver::new();
        for (offset, size, error) in [
            (DEQUEUE, 4, BusError::Size),
            (4 * WINDOW_BYTES, 8, BusError::Unmapped),
            (ENQUEUE_END, 8, BusError::Unmapped),
            (0x7F8, 8, BusError::Unmapped),
        ] {
            assert_eq!(driver.0.read(&mut driver.1, offset, size), Err(error), "{offset:#x}");
            assert_eq!(driver.0.write(&mut driver.1, offset, size, 1), Err(error), "{offset:#x}");
        }
        for offset in [0x800, 0x808, 0x8F8, INTERRUPT_ENQUEUE_END, 0xFF8] {
            driver.write(offset, 1);
            assert_eq!(driver.read(offset), 0, "{offset:#x}");
        }
    }

    #[test]
    fn a_line_wakes_one_task_per_blocking() {
        let mut driver = Driver::new();
        driver.push(0, 50);
        driver.push(1, 60);
        driver.block(4, 1);
        driver.block(4, 2);
        assert_eq!(driver.status(4), 2 | 1 << 8);
        driver.line(4, true);
        assert_eq!(driver.status(4), 1 | 1 << 9, "one left, gate closed");
        driver.line(4, false);
        driver.line(4, true);
        assert_eq!([driver.fetch(), driver.fetch(), driver.fetch(), driver.fetch()], [50, 1, 60, 0]);
        driver.line(4, false);
        driver.block(4, 3);
        driver.line(4, true);
        assert_eq!((driver.fetch(), driver.fetch()), (2, 0));
    }

    #[test]
    fn a_level_is_not_missed_and_a_pulse_is() {
        let mut driver = Driver::new();
        driver.line(9, true);
        driver.block(9, 1);
        assert_eq!(driver.fetch(), 1, "the line was high already");
        driver.line(9, false);
        driver.line(9, true);
        driver.line(9, false);
        driver.block(9, 2);
        assert_eq!(driver.fetch(), 0);
    }

    #[test]
    fn lower_lines_go_first_and_a_full_queue_holds_them() {
        let mut driver = Driver::new();
        (0..1024).for_each(|entry| driver.push(7, 100 + entry));
        driver.block(6, 2);
        driver.block(5, 1);
        driver.line(6, true);
        driver.line(5, true);
        assert_eq!(driver.status(5) & 0xFF, 1, "no room");
        assert_eq!([driver.fetch(), driver.fetch(), driver.fetch()], [100, 1, 2]);
        assert_eq!(driver.fetch(), 101);
        assert_eq!(driver.read(ENQUEUE) & OVERFLOW, 0, "nothing was lost");
    }

    #[test]
    fn a_full_blocked_queue_drops_and_does_not_stall() {
        let mut driver = Driver::new();
        (1..=5).for_each(|entry| driver.block(0, entry));
        assert_eq!(driver.status(0), 4 | 1 << 8 | OVERFLOW);
        assert_eq!(driver.status(0), 4 | 1 << 8);
    }

    proptest! {
        /// Whatever harts and lines do: what goes in comes out once, as long as nothing overflows.
        #[test]
        fn nothing_is_lost_or_doubled(steps in proptest::collection::vec((0u8..4, 0u64..8), 0..600)) {
            let mut driver = Driver::new();
            let (mut put, mut got) = (Vec::new(), Vec::new());
            for (step, (action, argument)) in steps.into_iter().enumerate() {
                let entry = step as u64 + 1;
                match action {
                    0 => { driver.push(argument, entry); put.push(entry); }
                    1 if driver.status(argument) & 0xFF < 4 => { driver.block(argument, entry); put.push(entry); }
                    2 => driver.line(argument as u32, step % 3 != 0),
                    _ => got.push(driver.fetch()),
                }
            }
            for line in 0..8 {
                // Each push opens the gate for those that still wait.
                for extra in 0..4 {
                    driver.line(line, true);
                    if driver.status(line.into()) & 0xFF != 0 && driver.status(line.into()) & 0xFF < 4 {
                        let entry = 10_000 + u64::from(8 * line) + extra;
                        driver.block(line.into(), entry);
                        put.push(entry);
                    }
                }
            }
            let waiting: u64 = (0..8).map(|line| driver.status(line) & 0xFF).sum();
            loop {
                match driver.fetch() { 0 => break, entry => got.push(entry) }
            }
            got.retain(|&entry| entry != 0);
            got.sort_unstable();
            let unique = { let mut all = got.clone(); all.dedup(); all.len() };
            prop_assert_eq!(unique, got.len());
            prop_assert_eq!(got.len() as u64 + waiting, put.len() as u64);
            prop_assert!(got.iter().all(|entry| put.contains(entry)));
        }
    }
}
