//! The driver's NIC as smoltcp's device: frames are read and built in the buffers that the device itself uses.
//!
//! A token owns a buffer and gives it back in `Drop`, whether smoltcp used the token or not: a receive buffer to the ring, an
//! unused transmit buffer to the spares. Tokens of both directions are alive at once and both need the NIC, so it sits in a `RefCell`;
//! no borrow is held while smoltcp works on a frame.
//!
//! Register writes are the expensive part, so tokens only fill rings; [`Wire::publish`] rings both doorbells, once per poll.

use alloc::vec::Vec;
use core::cell::RefCell;

use drivers::nic::{Counters, Event, Link, MAX_FRAME, MIN_RX_BUFFER, NicDriver, RxFrame, TxRefused};
use drivers::{DmaBuffer, DmaRegion};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::config::DESCRIPTORS;
use crate::stack::Wire;

/// The NIC and its buffers that are not with the device.
pub struct Nic<N> {
    shared: RefCell<Shared<N>>,
}

struct Shared<N> {
    nic: N,
    /// A received frame that was looked at and not yet taken.
    next: Option<RxFrame>,
    /// Transmit buffers at hand.
    spare: Vec<DmaBuffer>,
    /// Somebody wanted to send and there was no buffer: the device is to interrupt when one is done.
    starved: bool,
}

impl<N: NicDriver> Shared<N> {
    fn take_spare(&mut self) -> Option<DmaBuffer> {
        if self.spare.is_empty() {
            self.collect();
        }
        if self.spare.is_empty() && !self.starved {
            self.starved = true;
            self.nic.tx_notify(true);
            // What was done just before need not interrupt.
            self.collect();
        }
        let buffer = self.spare.pop();
        if self.starved && buffer.is_some() {
            self.starved = false;
            self.nic.tx_notify(false);
        }
        buffer
    }

    fn collect(&mut self) {
        while let Some(buffer) = self.nic.tx_return() {
            self.spare.push(buffer);
        }
    }
}

impl<N: NicDriver> Nic<N> {
    /// Fills the receive ring of `nic` and sets transmit buffers aside, all from `region`.
    /// `None`: the region has no room for them.
    pub fn new(mut nic: N, region: &mut DmaRegion) -> Option<Self> {
        let mut spare = Vec::with_capacity(DESCRIPTORS - 1);
        for _ in 1..DESCRIPTORS {
            let buffer = region.carve(MIN_RX_BUFFER, 64)?;
            // A ring of `DESCRIPTORS` takes one fewer; what a smaller ring refuses is kept for sending.
            if let Err(refused) = nic.rx_provide(buffer) {
                spare.push(refused);
            }
            spare.push(region.carve(MIN_RX_BUFFER, 64)?);
        }
        nic.rx_publish();
        Some(Self { shared: RefCell::new(Shared { nic, next: None, spare, starved: false }) })
    }

    /// State of the link; sets the MAC's speed.
    pub fn link(&mut self) -> Result<Link, N::Error> {
        self.shared.get_mut().nic.link()
    }

    /// What the driver counted.
    pub fn counters(&self) -> Counters {
        self.shared.borrow().nic.counters()
    }
}

impl<N: NicDriver> Wire for Nic<N> {
    type Error = N::Error;

    fn acknowledge(&mut self) -> Result<(), N::Error> {
        let nic = &mut self.shared.get_mut().nic;
        if nic.acknowledge() == Event::Error {
            nic.recover()?;
        }
        Ok(())
    }

    fn peek<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let shared = self.shared.get_mut();
        if shared.next.is_none() {
            shared.next = shared.nic.rx_return();
        }
        shared.next.as_ref().map(|frame| look(frame.bytes()))
    }

    fn is_starved(&self) -> bool {
        self.shared.borrow().starved
    }

    fn publish(&mut self) {
        let shared = self.shared.get_mut();
        shared.nic.tx_publish();
        shared.nic.rx_publish();
    }
}

/// A received frame; its buffer goes back to the device.
pub struct Received<'a, N: NicDriver> {
    shared: &'a RefCell<Shared<N>>,
    frame: Option<RxFrame>,
}

impl<N: NicDriver> RxToken for Received<'_, N> {
    fn consume<T, F: FnOnce(&[u8]) -> T>(self, f: F) -> T {
        // `frame` is there until `Drop`; an empty frame is ignored by smoltcp.
        f(self.frame.as_ref().map_or(&[], RxFrame::bytes))
    }
}

impl<N: NicDriver> Drop for Received<'_, N> {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            // Cannot be refused: the ring has had a free descriptor since this frame left it.
            let _ = self.shared.borrow_mut().nic.rx_provide(frame.buffer);
        }
    }
}

/// The right to send one frame.
pub struct Sending<'a, N: NicDriver> {
    shared: &'a RefCell<Shared<N>>,
    buffer: Option<DmaBuffer>,
}

impl<N: NicDriver> TxToken for Sending<'_, N> {
    fn consume<T, F: FnOnce(&mut [u8]) -> T>(mut self, length: usize, f: F) -> T {
        let Some(mut buffer) = self.buffer.take() else { return f(&mut []) };
        let result = f(&mut buffer.bytes_mut()[..length]);
        let mut shared = self.shared.borrow_mut();
        // There is a descriptor for each transmit buffer, and smoltcp keeps to `max_transmission_unit`: no refusal. Should it come
        // to one, the frame is lost as any frame may be.
        if let Err(TxRefused::Full(buffer) | TxRefused::BadFrame(buffer)) = shared.nic.tx_provide(buffer, length) {
            shared.spare.push(buffer);
        }
        result
    }
}

impl<N: NicDriver> Drop for Sending<'_, N> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.shared.borrow_mut().spare.push(buffer);
        }
    }
}

impl<N: NicDriver> Device for Nic<N> {
    type RxToken<'a>
        = Received<'a, N>
    where
        N: 'a;
    type TxToken<'a>
        = Sending<'a, N>
    where
        N: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_, N>, Sending<'_, N>)> {
        let shared = self.shared.get_mut();
        // A frame is taken only when it can be answered; otherwise it waits in the ring for the transmit interrupt.
        let buffer = shared.take_spare()?;
        let Some(frame) = shared.next.take().or_else(|| shared.nic.rx_return()) else {
            shared.spare.push(buffer);
            return None;
        };
        let shared = &self.shared;
        Some((Received { shared, frame: Some(frame) }, Sending { shared, buffer: Some(buffer) }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_, N>> {
        let buffer = self.shared.get_mut().take_spare()?;
        Some(Sending { shared: &self.shared, buffer: Some(buffer) })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME;
        capabilities
    }
}
