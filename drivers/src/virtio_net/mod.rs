//! virtio-net over virtio-mmio (VIRTIO 1.2, sections 5.1 and 4.2), versions 2 and 1 of the transport.
//!
//! The same life as [`crate::axinic`]: buffers are the caller's, lent between `provide` and `return`; completion is seen in memory, a
//! register is written once per batch and touched twice per interrupt; transmit completions do not interrupt unless asked for.
//! No offloads, no control queue: what is negotiated is the station address and the link's state.
//!
//! The device is not believed (`queue.rs`). What breaks the rules is [`Event::Error`], and [`VirtioNet::recover`] resets it.
//!
//! The interrupt flag of the rings is a hint without event indices: an interrupt more than asked for is possible and harmless.

pub mod queue;
mod transport;

use self::queue::{Direction, Queue};
use self::transport::{Transport, USED};
use crate::dma::{DmaBuffer, DmaRegion};
use crate::mmio::Registers;
use crate::nic::{Counters, Event, Link, MAX_FRAME, MIN_RX_BUFFER, NicDriver, RxFrame, TxRefused};

/// Queues of the device.
const RECEIVE: u32 = 0;
const TRANSMIT: u32 = 1;
/// The device has a station address.
const FEATURE_MAC: u64 = 1 << 5;
/// The device tells the state of the link.
const FEATURE_STATUS: u64 = 1 << 16;
/// Bytes before each frame. Without mergeable buffers version 1 leaves the last field out.
const HEADER_BYTES: usize = 12;
const LEGACY_HEADER_BYTES: usize = 10;
/// Bit 0 of `status`, the upper half of configuration word 1: the link is up.
const LINK_UP: u32 = 1 << 16;

/// Why the device cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No virtio device, or not a network device.
    NoNetworkDevice,
    /// A version of the transport that this driver does not know.
    Version(u32),
    /// The device did not come out of reset.
    Reset,
    /// The device refuses the features, or has not what every device of its version has.
    Features,
    /// A queue is missing, too small or already in use.
    Queue,
    /// The DMA region has no room for the queues.
    OutOfDmaMemory,
    /// The DMA region lies above what a page number of version 1 reaches (2^44).
    DmaMemoryTooHigh,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoNetworkDevice => f.write_str("there is no virtio network device"),
            Self::Version(version) => write!(f, "version {version} of virtio-mmio is not known"),
            Self::Reset => f.write_str("the device does not come out of reset"),
            Self::Features => f.write_str("no agreement on features"),
            Self::Queue => f.write_str("a queue is missing or in use"),
            Self::OutOfDmaMemory => f.write_str("the DMA memory is too small for the queues"),
            Self::DmaMemoryTooHigh => f.write_str("the DMA memory lies too high"),
        }
    }
}

impl core::error::Error for Error {}

/// The interface: a register window, two queues.
pub struct VirtioNet<R> {
    transport: Transport<R>,
    receive: Queue,
    transmit: Queue,
    features: u64,
    counters: Counters,
}

impl<R: Registers> VirtioNet<R> {
    /// Resets and starts the device behind `registers`; its queues are carved from `region`, and so must be the buffers given to it
    /// later. Each takes at most `buffers` at a time, fewer if the device has smaller queues.
    ///
    /// # Panics
    /// If `buffers` is not a power of two of at least 2 and at most 16384.
    pub fn new(registers: R, region: &mut DmaRegion, buffers: usize) -> Result<Self, Error> {
        let mut transport = Transport::new(registers)?;
        let features = transport.start(FEATURE_MAC | FEATURE_STATUS)?;
        let header = if transport.is_legacy() { LEGACY_HEADER_BYTES } else { HEADER_BYTES };
        let mut queue = |index, direction| {
            // Two descriptors for each buffer; sizes are powers of two, or rounded down to one.
            let entries = match transport.queue_limit(index) / 2 {
                0 | 1 => return Err(Error::Queue),
                limit => buffers.min(1 << limit.ilog2()),
            };
            Queue::new(region, entries, header, direction).ok_or(Error::OutOfDmaMemory)
        };
        let receive = queue(RECEIVE, Direction::Receive)?;
        let mut transmit = queue(TRANSMIT, Direction::Transmit)?;
        transmit.interrupt(false);
        let mut nic = Self { transport, receive, transmit, features, counters: Counters::default() };
        nic.run()?;
        Ok(nic)
    }

    fn run(&mut self) -> Result<(), Error> {
        self.transport.set_queue(RECEIVE, &self.receive)?;
        self.transport.set_queue(TRANSMIT, &self.transmit)?;
        self.transport.go();
        Ok(())
    }

    /// The station address that the device has been given, if any.
    pub fn mac_address(&mut self) -> Option<[u8; 6]> {
        if self.features & FEATURE_MAC == 0 {
            return None;
        }
        let [a, b, c, d] = self.transport.config(0).to_le_bytes();
        let [e, f, ..] = self.transport.config(1).to_le_bytes();
        Some([a, b, c, d, e, f])
    }
}

impl<R: Registers> NicDriver for VirtioNet<R> {
    type Error = Error;

    fn rx_provide(&mut self, buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        if buffer.size() < MIN_RX_BUFFER {
            return Err(buffer);
        }
        let length = buffer.size();
        self.receive.push(buffer, length)
    }

    fn rx_publish(&mut self) {
        if self.receive.publish() {
            self.transport.notify(RECEIVE);
        }
    }

    fn rx_return(&mut self) -> Option<RxFrame> {
        // Ends: each turn takes an element of the used ring, and a buffer given back is not used before it is published.
        loop {
            let done = self.receive.pop()?;
            match self.receive.frame_length(&done) {
                Some(length) => {
                    self.counters.rx_frames += 1;
                    return Some(RxFrame::new(done.buffer, length));
                }
                None => {
                    self.counters.rx_dropped += 1;
                    // Cannot fail: the slot it came from is free. Were it otherwise, the queue would merely lack this buffer.
                    let _ = self.rx_provide(done.buffer);
                }
            }
        }
    }

    fn tx_provide(&mut self, buffer: DmaBuffer, length: usize) -> Result<(), TxRefused> {
        if length == 0 || length > MAX_FRAME || length > buffer.size() {
            return Err(TxRefused::BadFrame(buffer));
        }
        self.transmit.push(buffer, length).map_err(TxRefused::Full)
    }

    fn tx_publish(&mut self) {
        if self.transmit.publish() {
            self.transport.notify(TRANSMIT);
        }
    }

    fn tx_return(&mut self) -> Option<DmaBuffer> {
        let done = self.transmit.pop()?;
        match done.written {
            Some(_) => self.counters.tx_frames += 1,
            None => self.counters.tx_failed += 1,
        }
        Some(done.buffer)
    }

    fn tx_notify(&mut self, on: bool) {
        self.transmit.interrupt(on);
    }

    fn acknowledge(&mut self) -> Event {
        let reasons = self.transport.take_interrupt();
        let broken = self.receive.is_broken() || self.transmit.is_broken();
        if broken || reasons & !USED != 0 && self.transport.needs_reset() {
            Event::Error
        } else if reasons & USED != 0 {
            Event::Packets
        } else {
            Event::None
        }
    }

    fn recover(&mut self) -> Result<(), Error> {
        self.counters.resets += 1;
        self.features = self.transport.start(FEATURE_MAC | FEATURE_STATUS)?;
        self.receive.restart();
        self.transmit.restart();
        self.run()
    }

    fn link(&mut self) -> Result<Link, Error> {
        let up = self.features & FEATURE_STATUS == 0 || self.transport.config(1) & LINK_UP != 0;
        Ok(if up { Link::Up(0) } else { Link::Down })
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
