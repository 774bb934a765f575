//! What the drivers of network interfaces have in common: the four verbs, and the words for what goes wrong.
//!
//! ```text
//!            rx_provide, rx_publish                         tx_provide, tx_publish
//!   caller ───────────────────────▶ receive ring ◀── device ──▶ transmit ring ◀─────── caller
//!          ◀─────────────────────── rx_return                   tx_return ──────────▶
//! ```

use crate::dma::DmaBuffer;

/// Longest frame in bytes without FCS: Ethernet header and 1500 bytes.
pub const MAX_FRAME: usize = 1514;

/// Smallest buffer that every driver takes: 1518 with a VLAN tag, rounded up to a cache line.
pub const MIN_RX_BUFFER: usize = 1536;

/// A received frame: its buffer and how much of it the frame fills (Ethernet header to payload, no FCS).
#[derive(Debug)]
pub struct RxFrame {
    /// The buffer, to be given back by `rx_provide`.
    pub buffer: DmaBuffer,
    length: usize,
}

impl RxFrame {
    /// A frame in the first `length` bytes of `buffer`; a length beyond it is cut.
    pub(crate) fn new(buffer: DmaBuffer, length: usize) -> Self {
        let length = length.min(buffer.size());
        Self { buffer, length }
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.length]
    }
}

/// Why a frame was not taken. The buffer comes back.
#[derive(Debug)]
pub enum TxRefused {
    /// Every descriptor is in use: try again after `tx_return`.
    Full(DmaBuffer),
    /// The length is 0, beyond [`MAX_FRAME`] (unless the driver was told to allow more) or beyond the buffer, or the buffer is not one the device can reach.
    BadFrame(DmaBuffer),
}

/// What an interrupt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing since the last look.
    None,
    /// Packets are done.
    Packets,
    /// The device stopped, or does what it must not; only `recover` brings it back.
    Error,
}

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing at the other end, or still negotiating.
    Down,
    /// Up, at this many megabits per second; 0 if the device has no speed.
    Up(u32),
}

/// What a driver counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Good frames received.
    pub rx_frames: u64,
    /// Receive buffers that came back with an error, part of a frame or an impossible length.
    pub rx_dropped: u64,
    /// Frames that the device took.
    pub tx_frames: u64,
    /// Frames that the device failed to take.
    pub tx_failed: u64,
    /// Recoveries from an error.
    pub resets: u64,
}

/// A network interface.
pub trait NicDriver {
    /// Why it cannot be used any more.
    type Error: core::error::Error;

    /// Gives the device an empty buffer, from the next [`Self::rx_publish`] on. Errors: the ring is full or the buffer is unusable;
    /// it comes back.
    fn rx_provide(&mut self, buffer: DmaBuffer) -> Result<(), DmaBuffer>;
    /// Lets the device have the buffers provided so far.
    fn rx_publish(&mut self);
    /// Takes the oldest received frame.
    fn rx_return(&mut self) -> Option<RxFrame>;

    /// Gives the device the frame in the first `length` bytes of `buffer`, to be sent from the next [`Self::tx_publish`] on.
    fn tx_provide(&mut self, buffer: DmaBuffer, length: usize) -> Result<(), TxRefused>;
    /// Lets the device have the frames provided so far.
    fn tx_publish(&mut self);
    /// Takes back the buffer of a frame that the device is done with.
    fn tx_return(&mut self) -> Option<DmaBuffer>;
    /// Turns the transmit interrupt on or off. What was done before it was turned on need not interrupt: look again.
    fn tx_notify(&mut self, on: bool);

    /// Reads and acknowledges the device's interrupt. Call it before draining [`Self::rx_return`]: a frame that arrives between the
    /// two then interrupts again, the other way round it could be missed.
    fn acknowledge(&mut self) -> Event;
    /// After [`Event::Error`]: resets the device and starts it again. Frames not sent are lost, their buffers come back through
    /// [`Self::tx_return`]; drain [`Self::rx_return`] and publish afterwards.
    fn recover(&mut self) -> Result<(), Self::Error>;
    /// State of the link; sets the device to its speed.
    fn link(&mut self) -> Result<Link, Self::Error>;
    /// What was counted so far.
    fn counters(&self) -> Counters;
}
