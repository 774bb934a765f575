//! The registers that more than one part of the MAC works with: control, configuration, status and interrupts.
//!
//! Interrupt status: an event sets its bit only while the bit is not masked (Linux, `macb_rx_poll`: bits already set do not interrupt
//! when they are enabled later, so it looks at the ring once more). Reading clears the register, as design configuration 1
//! says of this build.

use crate::device::Context;
use crate::devices::irq_line::IrqLine;
use serde::{Deserialize, Serialize};

/// NWCTRL bits.
pub(super) mod control {
    #![allow(missing_docs)] // the manual's names
    pub const LOOPBACK_LOCAL: u32 = 1 << 1;
    pub const RX_ENABLE: u32 = 1 << 2;
    pub const TX_ENABLE: u32 = 1 << 3;
    pub const MANAGEMENT_ENABLE: u32 = 1 << 4;
    pub const CLEAR_STATISTICS: u32 = 1 << 5;
    pub const START_TX: u32 = 1 << 9;
    pub const HALT_TX: u32 = 1 << 10;
    /// What holds its value.
    pub const STORED: u32 = 0x9F;
}

/// NWCFG bits.
pub(super) mod config {
    #![allow(missing_docs)] // the manual's names
    pub const JUMBO: u32 = 1 << 3;
    pub const COPY_ALL: u32 = 1 << 4;
    pub const NO_BROADCAST: u32 = 1 << 5;
    pub const MULTICAST_HASH: u32 = 1 << 6;
    pub const UNICAST_HASH: u32 = 1 << 7;
    pub const RECEIVE_1536: u32 = 1 << 8;
    pub const GIGABIT: u32 = 1 << 10;
    pub const BUFFER_OFFSET_SHIFT: u32 = 14;
    pub const LENGTH_ERROR_DISCARD: u32 = 1 << 16;
    pub const FCS_REMOVE: u32 = 1 << 17;
    pub const MDC_SHIFT: u32 = 18;
    pub const RX_CHECKSUM: u32 = 1 << 24;
    pub const IGNORE_FCS: u32 = 1 << 26;
    pub const AFTER_RESET: u32 = 0x0008_0000;
}

/// DMACFG bits.
pub(super) mod dma {
    #![allow(missing_docs)] // the manual's names
    pub const TX_CHECKSUM: u32 = 1 << 11;
    pub const RX_BUFFER_SHIFT: u32 = 16;
    pub const RX_EXTENDED: u32 = 1 << 28;
    pub const TX_EXTENDED: u32 = 1 << 29;
    pub const ADDRESS_64: u32 = 1 << 30;
    pub const AFTER_RESET: u32 = 0x0002_0784;
}

/// TXSTATUS bits; all are cleared by writing 1.
pub(super) mod tx_status {
    #![allow(missing_docs)] // the manual's names
    pub const USED_BIT_READ: u32 = 1;
    /// Not stored: the transmitter is going.
    pub const GO: u32 = 1 << 3;
    pub const BUS_ERROR: u32 = 1 << 4;
    pub const COMPLETE: u32 = 1 << 5;
}

/// RXSTATUS bits; all are cleared by writing 1.
pub(super) mod rx_status {
    #![allow(missing_docs)] // the manual's names
    pub const BUFFER_NOT_AVAILABLE: u32 = 1;
    pub const FRAME: u32 = 1 << 1;
    pub const OVERRUN: u32 = 1 << 2;
    pub const BUS_ERROR: u32 = 1 << 3;
}

/// ISR bits.
pub(super) mod interrupt {
    #![allow(missing_docs)] // the manual's names
    pub const MANAGEMENT_DONE: u32 = 1;
    pub const RX_COMPLETE: u32 = 1 << 1;
    pub const RX_USED_BIT_READ: u32 = 1 << 2;
    pub const TX_USED_BIT_READ: u32 = 1 << 3;
    pub const BUS_ERROR: u32 = 1 << 6;
    pub const TX_COMPLETE: u32 = 1 << 7;
    pub const RX_OVERRUN: u32 = 1 << 10;
    pub const RX_BUS_ERROR: u32 = 1 << 11;
    /// The bits that the mask has.
    pub const ALL: u32 = 0x07FF_FFFF;
}

/// Their values.
#[derive(Serialize, Deserialize)]
pub(super) struct Registers {
    pub(super) control: u32,
    pub(super) config: u32,
    pub(super) dma: u32,
    pub(super) tx_status: u32,
    pub(super) rx_status: u32,
    pub(super) jumbo_limit: u32,
    status: u32,
    mask: u32,
    line: IrqLine,
}

impl Registers {
    /// After reset.
    pub(super) fn new(jumbo_limit: u32) -> Self {
        Self {
            control: 0,
            config: config::AFTER_RESET,
            dma: dma::AFTER_RESET,
            tx_status: 0,
            rx_status: 0,
            jumbo_limit,
            status: 0,
            mask: interrupt::ALL,
            line: IrqLine::new(0),
        }
    }

    /// Something happened that `bits` of the interrupt status stand for.
    pub(super) fn raise(&mut self, cx: &mut dyn Context, bits: u32) {
        self.status |= bits & !self.mask;
        self.line.set(cx, self.status & !self.mask != 0);
    }

    /// Reads and clears the interrupt status.
    pub(super) fn take_status(&mut self, cx: &mut dyn Context) -> u32 {
        let status = core::mem::take(&mut self.status);
        self.raise(cx, 0);
        status
    }

    /// IMR: 1 is masked.
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    /// Masks `off`, then unmasks `on`.
    pub(super) fn change_mask(&mut self, cx: &mut dyn Context, off: u32, on: u32) {
        self.mask = (self.mask | off & interrupt::ALL) & !on;
        self.raise(cx, 0);
    }

    /// Bytes of a descriptor with or without the extension of its direction (`extended`).
    pub(super) fn descriptor_bytes(&self, extended: u32) -> u64 {
        let more = |bit| if self.dma & bit != 0 { 8 } else { 0 };
        8 + more(dma::ADDRESS_64) + more(extended)
    }

    /// Longest frame with check sequence.
    pub(super) fn receive_limit(&self) -> usize {
        if self.config & config::JUMBO != 0 {
            self.jumbo_limit as usize
        } else if self.config & config::RECEIVE_1536 != 0 {
            1536
        } else {
            1518
        }
    }
}
