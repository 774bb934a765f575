//! The receiver: accepted frames wait in the packet memory and go to the buffers of the ring, one after the other.
//!
//! A frame that finds a descriptor still in software's hands is dropped (RXSTATUS buffer-not-available); the next frame
//! looks at the same descriptor again. All descriptors of a frame are looked at before the first buffer is written, so that half a frame is
//! never left behind.

use super::descriptor::{Descriptor, RX_EOF, RX_SOF, RX_USED, RX_WRAP};
use super::registers::{Registers, config, control, dma, interrupt, rx_status};
use super::statistics::{Counter, Statistics};
use crate::device::Context;
use crate::devices::axi_dma::{Timing, clocks};
use crate::devices::timer::Timer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Packet memory: 8 KiB, DMACFG after reset. A longer frame is let in when the memory is empty.
const MEMORY: usize = 8 << 10;

/// An accepted frame, and the bits of word 1 that go with its end.
#[derive(Serialize, Deserialize)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) flags: u32,
}

/// The receiver.
#[derive(Serialize, Deserialize)]
pub(super) struct Receiver {
    base: u64,
    next: u64,
    queue: VecDeque<Packet>,
    queued: usize,
    /// The frame that is being written, and where.
    writing: Option<(Packet, Vec<Descriptor>)>,
    write: Timer,
}

impl Receiver {
    /// An idle receiver; `kind` names its timer.
    pub(super) fn new(kind: u8) -> Self {
        Self { base: 0, next: 0, queue: VecDeque::new(), queued: 0, writing: None, write: Timer::new(kind) }
    }

    /// The queue pointer as it reads.
    pub(super) fn pointer(&self) -> u64 {
        self.next
    }

    /// Sets the queue pointer.
    pub(super) fn set_pointer(&mut self, address: u64) {
        self.base = address;
        self.next = address;
    }

    /// NWCTRL was written: without RX enable the pipeline is cleared, and the pointer stays.
    pub(super) fn control(&mut self, written: u32) {
        if written & control::RX_ENABLE == 0 {
            self.queue.clear();
            self.queued = 0;
            if let Some((_, descriptors)) = self.writing.take()
                && let Some(first) = descriptors.first()
            {
                self.next = first.at;
            }
            self.write.disarm();
        }
    }

    /// Takes an accepted frame in, if there is room.
    pub(super) fn accept(
        &mut self,
        cx: &mut dyn Context,
        registers: &mut Registers,
        statistics: &mut Statistics,
        packet: Packet,
    ) {
        if self.queued != 0 && self.queued + packet.bytes.len() > MEMORY {
            statistics.count(Counter::Overruns);
            registers.rx_status |= rx_status::OVERRUN;
            registers.raise(cx, interrupt::RX_OVERRUN);
            return;
        }
        self.queued += packet.bytes.len();
        self.queue.push_back(packet);
    }

    /// Goes as far as it can.
    pub(super) fn run(&mut self, cx: &mut dyn Context, registers: &mut Registers, statistics: &mut Statistics) {
        while self.writing.is_none()
            && let Some(packet) = self.queue.pop_front()
        {
            self.queued -= packet.bytes.len();
            match self.place(cx, registers, &packet) {
                Ok(descriptors) => {
                    let timing = Timing::default();
                    let walk = clocks(timing.fetch * descriptors.len() as u64);
                    let at = cx.now() + walk + timing.receive_data(packet.bytes.len() as u64);
                    self.write.arm(cx, at);
                    self.writing = Some((packet, descriptors));
                }
                Err(Refusal::Used) => {
                    statistics.count(Counter::ResourceErrors);
                    registers.rx_status |= rx_status::BUFFER_NOT_AVAILABLE;
                    registers.raise(cx, interrupt::RX_USED_BIT_READ);
                }
                Err(Refusal::Bus) => bus_error(cx, registers),
            }
        }
    }

    /// The descriptors for `packet`; the pointer moves behind them.
    fn place(
        &mut self,
        cx: &mut dyn Context,
        registers: &Registers,
        packet: &Packet,
    ) -> Result<Vec<Descriptor>, Refusal> {
        let bytes = packet.bytes.len() + offset(registers);
        let mut descriptors = Vec::new();
        let mut at = self.next;
        for _ in 0..bytes.div_ceil(buffer_bytes(registers)) {
            let descriptor = Descriptor::fetch(cx, at, registers.dma).map_err(|_| Refusal::Bus)?;
            // A ring shorter than the frame would use a descriptor twice.
            if descriptor.words[0] & RX_USED != 0 || descriptors.iter().any(|seen: &Descriptor| seen.at == at) {
                return Err(Refusal::Used);
            }
            at = if descriptor.words[0] & RX_WRAP != 0 {
                self.base
            } else {
                at.wrapping_add(registers.descriptor_bytes(dma::RX_EXTENDED))
            };
            descriptors.push(descriptor);
        }
        self.next = at;
        Ok(descriptors)
    }

    /// Takes an event.
    pub(super) fn event(&mut self, cx: &mut dyn Context, registers: &mut Registers, token: u64) {
        if !self.write.fires(token) {
            return;
        }
        let Some((packet, descriptors)) = self.writing.take() else { return };
        if write(cx, registers, &packet, &descriptors).is_none() {
            return bus_error(cx, registers);
        }
        registers.rx_status |= rx_status::FRAME;
        registers.raise(cx, interrupt::RX_COMPLETE);
    }
}

/// Why a frame has no place.
enum Refusal {
    /// The descriptor is software's.
    Used,
    /// It is not in RAM.
    Bus,
}

/// Data first, then word 1, then the bit that gives the buffer to software. None: outside RAM.
fn write(cx: &mut dyn Context, registers: &Registers, packet: &Packet, descriptors: &[Descriptor]) -> Option<()> {
    let (mut rest, mut skip) = (&packet.bytes[..], offset(registers));
    for (index, descriptor) in descriptors.iter().enumerate() {
        let (piece, more) = rest.split_at(rest.len().min(buffer_bytes(registers) - skip));
        cx.dma_write(descriptor.buffer(!3) + skip as u64, piece).ok()?;
        (rest, skip) = (more, 0);
        let first = if index == 0 { RX_SOF } else { 0 };
        // The whole length stands at the end; up to 10240 fits.
        let last = if index + 1 == descriptors.len() { RX_EOF | packet.flags | packet.bytes.len() as u32 } else { 0 };
        descriptor.write(cx, 1, first | last).ok()?;
        descriptor.write(cx, 0, descriptor.words[0] | RX_USED).ok()?;
    }
    Some(())
}

/// Bytes left free in front of a frame.
fn offset(registers: &Registers) -> usize {
    (registers.config >> config::BUFFER_OFFSET_SHIFT & 3) as usize
}

/// Bytes of a buffer: DMACFG in units of 64; 0 is not allowed and taken as 1.
fn buffer_bytes(registers: &Registers) -> usize {
    64 * (registers.dma >> dma::RX_BUFFER_SHIFT & 0xFF).max(1) as usize
}

fn bus_error(cx: &mut dyn Context, registers: &mut Registers) {
    registers.rx_status |= rx_status::BUS_ERROR;
    registers.raise(cx, interrupt::RX_BUS_ERROR);
}
