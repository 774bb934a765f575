//! Receive: empty buffers in, frames out.

use super::channel::Channel;
use super::ring::Ring;
use super::{AxiNic, Counters};
use crate::dma::DmaBuffer;
use crate::mmio::Registers;
use crate::nic::RxFrame;

/// Receive side of the NIC.
pub(super) struct Rx {
    pub ring: Ring,
    pub channel: Channel,
    /// Buffers were provided since the last doorbell.
    pub unpublished: bool,
}

impl Rx {
    fn provide(&mut self, buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        let length = buffer.size() as u32;
        self.ring.push(buffer, length)?;
        self.unpublished = true;
        Ok(())
    }

    /// The next good frame. Buffers with anything else go straight back into the ring.
    fn next_frame(&mut self, counters: &mut Counters) -> Option<RxFrame> {
        // Ends: each turn takes a finished descriptor, and one given back is not finished before the next doorbell.
        loop {
            let (buffer, completion) = self.ring.pop()?;
            if completion.whole_packet && !completion.failed {
                counters.rx_frames += 1;
                return Some(RxFrame::new(buffer, completion.length));
            }
            counters.rx_dropped += 1;
            // Cannot fail: the slot it came from is free. Were it otherwise, the ring would merely lack this buffer.
            let _ = self.provide(buffer);
        }
    }
}

impl<R: Registers> AxiNic<R> {
    /// Gives the device an empty buffer, from the next [`Self::rx_publish`] on. Errors: the ring is full or the buffer is not
    /// [usable](super::MAX_FRAME); it comes back.
    pub fn rx_provide(&mut self, buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        if !self.usable(&buffer) {
            return Err(buffer);
        }
        self.rx.provide(buffer)
    }

    /// Lets the device have the buffers provided so far: one register write, so once per batch.
    pub fn rx_publish(&mut self) {
        if self.rx.unpublished {
            self.rx.unpublished = false;
            self.rx.channel.doorbell(&mut self.dma, self.rx.ring.last());
        }
    }

    /// Takes the oldest received frame. Reads memory only, no register.
    pub fn rx_return(&mut self) -> Option<RxFrame> {
        self.rx.next_frame(&mut self.counters)
    }
}
