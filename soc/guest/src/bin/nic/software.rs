//! What software costs around the device: nothing beyond what it is, or as much as on the board.

use super::wait::Mode;
use soc_guest::read_csr;

pub fn now() -> u64 {
    read_csr!("mcycle")
}

/// Returns at cycle `end`, or at once if it is past.
pub fn until(end: u64) {
    while now() < end {}
}

/// Where the cycles of a batch went.
#[derive(Clone, Copy, Default)]
pub struct Phases {
    /// Up to the last tail write.
    pub submit: u64,
    /// From there until the completion is known.
    pub wait: u64,
    /// Taking the frames back.
    pub recycle: u64,
    /// Everything.
    pub all: u64,
}

impl Phases {
    pub fn add(&mut self, other: Self) {
        self.submit += other.submit;
        self.wait += other.wait;
        self.recycle += other.recycle;
        self.all += other.all;
    }
}

/// Least cycles of each phase.
#[derive(Clone, Copy)]
pub struct Software {
    /// Building a descriptor and writing the tail register.
    submit: u64,
    /// Behind the tail write, by mode.
    bookkeeping: [u64; 3],
    /// From the completion until it is known, by mode.
    notice: [u64; 3],
    /// What of that passes anyway.
    known: [u64; 3],
    recycle: u64,
    /// For each frame of a batch, by mode.
    recycle_frame: [u64; 3],
    /// The benchmark's own loop.
    pub around: u64,
}

/// Nothing is waited for.
pub const OURS: Software = Software {
    submit: 0,
    bookkeeping: [0; 3],
    notice: [0; 3],
    known: [0; 3],
    recycle: 0,
    recycle_frame: [0; 3],
    around: 0,
};

/// The published driver on its board (ATS-INTC project, driver-test/axinet, cycle breakdown of March 2024): submit 485, recycle 320,
/// loop 475 are measured there; the others are what its tables imply (poll, interrupt, revised future).
pub const BOARD: Software = Software {
    submit: 485,
    bookkeeping: [0, 127, 127],
    notice: [64, 163, 26],
    known: [0; 3],
    recycle: 320,
    recycle_frame: [0, 108, 108],
    around: 475,
};

/// Cycles that the doorbell takes this program, from the end of [`until`] on.
const DOORBELL: u64 = 50;
/// Clocks from the tail write to the completion of a frame of 60 bytes: what the device takes whoever waits.
const DEVICE_60_BYTES: u64 = 227;

impl Software {
    /// From tail write to notice this program needs `wait` cycles for a frame of 60 bytes.
    pub fn know(&mut self, mode: Mode, wait: u64) {
        self.known[mode as usize] = wait.saturating_sub(DEVICE_60_BYTES);
    }

    /// From the start of a frame until its doorbell.
    pub fn submit(&self) -> u64 {
        self.submit.saturating_sub(DOORBELL)
    }

    pub fn bookkeeping(&self, mode: Mode) -> u64 {
        self.bookkeeping[mode as usize]
    }

    pub fn notice(&self, mode: Mode) -> u64 {
        self.notice[mode as usize].saturating_sub(self.known[mode as usize])
    }

    pub fn recycle(&self, mode: Mode, frames: u64) -> u64 {
        self.recycle + self.recycle_frame[mode as usize] * frames
    }
}
