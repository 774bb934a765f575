//! Transmit: filled buffers in, empty buffers out.
//!
//! A sent buffer is worth nothing until the next frame needs one, so completion needs no interrupt: [`AxiNic::tx_return`] is
//! called before a buffer is wanted. Only who has none left asks for an interrupt, by [`AxiNic::tx_notify`].

use super::AxiNic;
use super::channel::{Channel, Coalesce};
use super::regs::{bd, mac};
use super::ring::Ring;
use crate::dma::DmaBuffer;
use crate::mmio::Registers;
use crate::nic::TxRefused;

/// Transmit side of the NIC.
pub(super) struct Tx {
    pub ring: Ring,
    pub channel: Channel,
    /// Frames were provided since the last doorbell.
    pub unpublished: bool,
    /// Longest frame taken.
    pub longest: usize,
}

impl<R: Registers> AxiNic<R> {
    /// Gives the device the frame in the first `length` bytes of `buffer`, to be sent from the next [`Self::tx_publish`] on.
    /// The MAC pads short frames and appends the FCS.
    pub fn tx_provide(&mut self, buffer: DmaBuffer, length: usize) -> Result<(), TxRefused> {
        if length == 0 || length > self.tx.longest || length > buffer.size() || !self.usable(&buffer) {
            return Err(TxRefused::BadFrame(buffer));
        }
        let control = bd::CONTROL_SOF | bd::CONTROL_EOF | length as u32;
        self.tx.ring.push(buffer, control).map_err(TxRefused::Full)?;
        self.tx.unpublished = true;
        Ok(())
    }

    /// Lets the device have the frames provided so far: one register write, so once per batch.
    pub fn tx_publish(&mut self) {
        if self.tx.unpublished {
            self.tx.unpublished = false;
            self.tx.channel.doorbell(&mut self.dma, self.tx.ring.last());
        }
    }

    /// Takes back the buffer of the oldest frame once the device has read it. Reads memory only, no register.
    pub fn tx_return(&mut self) -> Option<DmaBuffer> {
        let (buffer, completion) = self.tx.ring.pop()?;
        if completion.failed {
            self.counters.tx_failed += 1;
        } else {
            self.counters.tx_frames += 1;
        }
        Some(buffer)
    }

    /// Lets frames of up to `longest` bytes be sent; only within a network whose other stations take them. The MAC holds 16 KiB.
    pub fn tx_jumbo(&mut self, longest: usize) {
        self.tx.longest = longest;
        self.mac.write(mac::TC, mac::ENABLE | mac::JUMBO);
    }

    /// Says after how many completions the channel has an [`Event::Packets`](super::Event::Packets); each, unless this was called.
    pub fn tx_coalesce(&mut self, coalesce: Coalesce) {
        self.tx.channel.set_coalesce(&mut self.dma, coalesce);
    }

    /// Turns the transmit completion interrupt on or off; on while the caller waits for [`Self::tx_return`].
    pub fn tx_notify(&mut self, on: bool) {
        self.tx.channel.set_packet_interrupt(&mut self.dma, on);
    }
}
