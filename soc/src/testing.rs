//! A stand-in for the machine, so that a device model, or a driver on a device model, can be tested without harts.

pub mod fuzz;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::device::{BusError, Context, Device, Exit};
use crate::time::SimTime;

/// First address of the RAM of a [`FakeContext`], as on the board.
pub const RAM_BASE: u64 = 0x8000_0000;

/// RAM, interrupt lines, a clock and an event queue for one device.
pub struct FakeContext {
    now: SimTime,
    ram: Vec<u8>,
    events: BinaryHeap<Reverse<(SimTime, u64, u64)>>,
    sequence: u64,
    lines: Vec<bool>,
    rises: Vec<u64>,
    stopped: Option<Exit>,
    console: Vec<u8>,
}

impl FakeContext {
    /// A context with `ram_bytes` of zeroed RAM at [`RAM_BASE`], at time zero.
    pub fn new(ram_bytes: usize) -> Self {
        Self {
            now: SimTime::ZERO,
            ram: vec![0; ram_bytes],
            events: BinaryHeap::new(),
            sequence: 0,
            lines: Vec::new(),
            rises: Vec::new(),
            stopped: None,
            console: Vec::new(),
        }
    }

    /// Level of interrupt line `line`.
    pub fn line(&self, line: usize) -> bool {
        self.lines.get(line).copied().unwrap_or(false)
    }

    /// How often line `line` has gone from low to high.
    pub fn rises(&self, line: usize) -> u64 {
        self.rises.get(line).copied().unwrap_or(0)
    }

    /// How the device asked the machine to end, if it did.
    pub fn stopped(&self) -> Option<Exit> {
        self.stopped
    }

    /// What the device wrote to the console.
    pub fn console_bytes(&self) -> &[u8] {
        &self.console
    }

    /// RAM from `paddr` on.
    ///
    /// # Panics
    /// If `paddr` or `length` leaves RAM: the test is wrong.
    pub fn ram(&self, paddr: u64, length: usize) -> &[u8] {
        let at = self.index(paddr, length).expect("the test's address lies in RAM");
        &self.ram[at..at + length]
    }

    /// RAM from `paddr` on, to write. Panics as [`Self::ram`].
    pub fn ram_mut(&mut self, paddr: u64, length: usize) -> &mut [u8] {
        let at = self.index(paddr, length).expect("the test's address lies in RAM");
        &mut self.ram[at..at + length]
    }

    /// Little-endian word at `paddr`. Panics as [`Self::ram`].
    pub fn word(&self, paddr: u64) -> u32 {
        self.ram(paddr, 4).iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
    }

    /// Writes a little-endian word. Panics as [`Self::ram`].
    pub fn set_word(&mut self, paddr: u64, word: u32) {
        self.ram_mut(paddr, 4).copy_from_slice(&word.to_le_bytes());
    }

    /// Time of the next event.
    pub fn next_event(&self) -> Option<SimTime> {
        self.events.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Moves the clock to the next event and gives it to `device`. False if there is none.
    pub fn step(&mut self, device: &mut dyn Device) -> bool {
        let Some(Reverse((at, _, token))) = self.events.pop() else { return false };
        self.now = at;
        device.event(self, token);
        true
    }

    /// Lets `span` pass, with all events in it.
    pub fn advance(&mut self, device: &mut dyn Device, span: SimTime) {
        let end = self.now + span;
        while self.next_event().is_some_and(|at| at <= end) {
            self.step(device);
        }
        self.now = end;
    }

    /// Lets time pass until `done` holds, at most `limit`. Returns whether it held.
    pub fn run_until(&mut self, device: &mut dyn Device, limit: SimTime, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            if self.next_event().is_none_or(|at| at > end) {
                self.now = end;
                return done(self);
            }
            self.step(device);
        }
        true
    }

    fn index(&self, paddr: u64, length: usize) -> Option<usize> {
        let at = usize::try_from(paddr.checked_sub(RAM_BASE)?).ok()?;
        (at.checked_add(length)? <= self.ram.len()).then_some(at)
    }
}

impl Context for FakeContext {
    fn now(&self) -> SimTime {
        self.now
    }

    fn alarm(&mut self, token: u64, at: SimTime) {
        self.events.retain(|Reverse((_, _, pending))| *pending != token);
        if at < SimTime::END {
            self.sequence += 1;
            self.events.push(Reverse((at, self.sequence, token)));
        }
    }

    fn irq(&mut self, line: usize, level: bool) {
        if self.lines.len() <= line {
            self.lines.resize(line + 1, false);
            self.rises.resize(line + 1, 0);
        }
        self.rises[line] += u64::from(level && !self.lines[line]);
        self.lines[line] = level;
    }

    fn dma_read(&mut self, paddr: u64, buf: &mut [u8]) -> Result<(), BusError> {
        let at = self.index(paddr, buf.len()).ok_or(BusError::Refused)?;
        buf.copy_from_slice(&self.ram[at..at + buf.len()]);
        Ok(())
    }

    fn dma_write(&mut self, paddr: u64, bytes: &[u8]) -> Result<(), BusError> {
        let at = self.index(paddr, bytes.len()).ok_or(BusError::Refused)?;
        self.ram[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn hart_line(&mut self, _hart: usize, _bit: u32, _level: bool) {}

    fn stop(&mut self, exit: Exit) {
        self.stopped = Some(exit);
    }

    fn console(&mut self, byte: u8) {
        self.console.push(byte);
    }
}
