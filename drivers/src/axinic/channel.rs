//! One DMA channel's registers: start, doorbell, interrupts. Transmit and receive differ in the base only.

use core::num::NonZeroU8;

use super::regs::dma;
use crate::dma::before_doorbell;
use crate::mmio::Registers;
use crate::nic::Event;

/// When a channel interrupts: after so many packets, or some time after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalesce {
    /// Packets until the interrupt.
    pub packets: NonZeroU8,
    /// Delay after the end of a packet until the interrupt comes even if fewer packets are there, in units of 125 cycles of the
    /// DMA clock (1.25 us at 100 MHz). 0 = never: then fewer than `packets` outstanding packets give no interrupt at all.
    pub delay: u8,
}

impl Coalesce {
    /// An interrupt for every packet.
    pub const EACH: Self = Self { packets: NonZeroU8::MIN, delay: 0 };

    fn control(self) -> u32 {
        u32::from(self.packets.get()) << dma::CR_IRQ_THRESHOLD_SHIFT | u32::from(self.delay) << dma::CR_IRQ_DELAY_SHIFT
    }
}

/// A channel, named by the base of its registers, with the control word it runs with.
pub struct Channel {
    base: usize,
    control: u32,
}

impl Channel {
    /// The channel at `base`, to interrupt as `coalesce` says once started; with `None`, only on errors and on request.
    pub fn new(base: usize, coalesce: Option<Coalesce>) -> Self {
        let packets = if coalesce.is_some() { dma::CR_IOC_IRQ_EN | dma::CR_DLY_IRQ_EN } else { 0 };
        let control = dma::CR_ERR_IRQ_EN | packets | coalesce.unwrap_or(Coalesce::EACH).control();
        Self { base, control }
    }

    /// Starts the channel after a reset; it fetches nothing before the first doorbell.
    /// The order is PG021's: interrupt set-up, first descriptor, run.
    pub fn start(&self, registers: &mut impl Registers, first_descriptor: u64) {
        registers.write(self.base + dma::DMACR, self.control);
        registers.write(self.base + dma::CURDESC, first_descriptor as u32);
        registers.write(self.base + dma::DMACR, self.control | dma::CR_RS);
    }

    /// Lets the device have all descriptors up to and including the one at `last_descriptor`.
    pub fn doorbell(&self, registers: &mut impl Registers, last_descriptor: u64) {
        // Orders descriptor and payload writes before the tail write; its partner is the device's fetch after the tail write.
        before_doorbell();
        registers.write(self.base + dma::TAILDESC, last_descriptor as u32);
    }

    /// Counts completions by `coalesce` from now on; whether they interrupt is another matter.
    pub fn set_coalesce(&mut self, registers: &mut impl Registers, coalesce: Coalesce) {
        self.control = self.control & dma::CR_BITS_BELOW_THRESHOLD | coalesce.control();
        registers.write(self.base + dma::DMACR, self.control | dma::CR_RS);
    }

    /// Turns the completion interrupt of a channel made without one on or off. What completed meanwhile interrupts at once.
    pub fn set_packet_interrupt(&mut self, registers: &mut impl Registers, on: bool) {
        let control = if on { self.control | dma::CR_IOC_IRQ_EN } else { self.control & !dma::CR_IOC_IRQ_EN };
        if control != self.control {
            self.control = control;
            registers.write(self.base + dma::DMACR, control | dma::CR_RS);
        }
    }

    /// Reads and acknowledges the channel's interrupt.
    /// The value read is written back whole: bits 14:12 clear, and device models that store the rest keep it.
    pub fn take_event(&self, registers: &mut impl Registers) -> Event {
        let status = registers.read(self.base + dma::DMASR);
        if status & dma::SR_ERRORS != 0 {
            return Event::Error;
        }
        if status & dma::SR_PACKET_IRQS == 0 {
            return Event::None;
        }
        registers.write(self.base + dma::DMASR, status);
        Event::Packets
    }
}
