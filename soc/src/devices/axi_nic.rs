//! The board's network interface: AXI DMA and AXI Ethernet as one device.
//!
//! The two blocks share streams and reset, so they are one [`Device`] with one event queue and three interrupt lines. Its window covers
//! both register files; what lies between them is unmapped.
//!
//! | offset | block | interrupt lines |
//! |---|---|---|
//! | 0x0_0000, 64 KiB | AXI DMA | 0 = MM2S (transmit), 1 = S2MM (receive) |
//! | 0x4_0000, 256 KiB | AXI Ethernet | 2 |
//!
//! The peer at the far end of the wire wakes up with the first access to the device; before that nobody listens.

use super::axi_dma::{self, AxiDma};
use super::axi_eth::{self, AxiEthernet};
use crate::device::{BusError, Context, Device};
use crate::error::SocError;
use crate::snapshot::State;
use crate::wire::Link;
use serde::{Deserialize, Serialize};

/// Offset of the AXI DMA registers.
pub const DMA_OFFSET: u64 = 0;
/// Size of the AXI DMA window.
pub const DMA_WINDOW: u64 = 0x1_0000;
/// Offset of the AXI Ethernet registers.
pub const ETHERNET_OFFSET: u64 = 0x4_0000;
/// Size of the whole window.
pub const WINDOW: u64 = ETHERNET_OFFSET + axi_eth::WINDOW;

/// Interrupt line of the transmit channel.
pub const LINE_MM2S: usize = 0;
/// Interrupt line of the receive channel.
pub const LINE_S2MM: usize = 1;
/// Interrupt line of the MAC.
pub const LINE_ETHERNET: usize = 2;

/// Cycles of a register access through the AXI interconnect.
const ACCESS_CYCLES: u64 = 20;

/// How the two blocks were built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// The DMA.
    pub dma: axi_dma::Build,
    /// The MAC.
    pub ethernet: axi_eth::Build,
}

/// The device.
#[derive(Serialize, Deserialize)]
pub struct AxiNic {
    dma: AxiDma,
    ethernet: AxiEthernet,
}

impl AxiNic {
    /// The board's NIC after power-on, with a cable in it or none.
    pub fn new(link: Option<Link>) -> Self {
        Self::with_build(Build::default(), link)
    }

    /// A NIC built otherwise.
    pub fn with_build(build: Build, link: Option<Link>) -> Self {
        Self {
            dma: AxiDma::new(build.dma, (LINE_MM2S, LINE_S2MM)),
            ethernet: AxiEthernet::new(build.ethernet, LINE_ETHERNET, link),
        }
    }

    /// The MAC, for its counters.
    pub fn ethernet(&self) -> &AxiEthernet {
        &self.ethernet
    }

    /// Lets wire, MAC and DMA go as far as they can at this time.
    fn settle(&mut self, cx: &mut dyn Context) {
        self.ethernet.run(cx);
        self.dma.kick(cx, &mut self.ethernet);
    }
}

impl Device for AxiNic {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        match offset {
            ..DMA_WINDOW => self.dma.read(cx, offset, size),
            ETHERNET_OFFSET..WINDOW => self.ethernet.read(offset - ETHERNET_OFFSET, size),
            _ => Err(BusError::Unmapped),
        }
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        match offset {
            ..DMA_WINDOW => {
                if self.dma.write(cx, offset, size, value)? {
                    self.ethernet.reset(cx);
                }
            }
            ETHERNET_OFFSET..WINDOW => self.ethernet.write(cx, offset - ETHERNET_OFFSET, size, value)?,
            _ => return Err(BusError::Unmapped),
        }
        self.settle(cx);
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        self.dma.event(cx, &mut self.ethernet, token);
        self.ethernet.event(cx, token);
        self.settle(cx);
    }

    fn latency_cycles(&self) -> u64 {
        ACCESS_CYCLES
    }

    fn save(&self) -> Result<State, SocError> {
        self.ethernet.port().check_repeatable()?;
        State::of(self)
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let mut saved: Self = state.read()?;
        saved.ethernet.port_mut().plug_in(self.ethernet.port_mut())?;
        *self = saved;
        Ok(())
    }
}
