//! One interrupt line of a device: tells the machine about changes of its level, and about nothing else.

use crate::device::Context;
use serde::{Deserialize, Serialize};

/// The line; low after power-on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IrqLine {
    index: usize,
    level: bool,
}

impl IrqLine {
    /// Line `index` of the device.
    pub(crate) const fn new(index: usize) -> Self {
        Self { index, level: false }
    }

    /// Drives the line.
    pub(crate) fn set(&mut self, cx: &mut dyn Context, level: bool) {
        if self.level != level {
            self.level = level;
            cx.irq(self.index, level);
        }
    }
}
