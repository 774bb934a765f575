//! The cost model of an in-order Rocket at 100 MHz.

use super::Timing;

/// Model state of all harts.
pub(crate) struct Rocket {
    rl: u64,
    wl: u64,
}

impl Rocket {
    pub fn new(_harts: usize, rl: u32, wl: u32) -> Self {
        Self { rl: rl.into(), wl: wl.into() }
    }
}

impl Timing for Rocket {
    const TIMED: bool = true;
}
