//! The TCP/IP stack: one smoltcp interface over one device.
//!
//! [`Stack::poll`] is the only place where frames move. It takes at most [`INGRESS_BUDGET`] frames, each offered to the one socket that it is for, lets
//! the sockets send to which something happened, and rings the device's doorbells once. Received data wakes the futures that wait for it, through
//! the wakers that smoltcp keeps for each socket.
//!
//! Who queues something to send ([`Stack::with_sockets`]) does not send it: the task that drives the stack is woken and polls it when its
//! turn comes, so that the writes of one round leave together.

use core::task::Waker;

use smoltcp::iface::{Config as InterfaceConfig, Interface, PollIngressSingleResult, PollResult};
use smoltcp::phy::Device;
use smoltcp::time::Instant;
use smoltcp::wire::IpCidr;

use crate::config::{Config, INGRESS_BUDGET};
use crate::socket::Sockets;

/// A device that collects what it is given and lets the hardware have it on request.
pub trait Wire: Device {
    /// Why the hardware cannot be used any more.
    type Error: core::error::Error;
    /// Acknowledges the hardware's interrupts, and brings hardware that has stopped back to life. To be called before
    /// [`Device::receive`] is, or a frame could be missed. Errors: it does not come back.
    fn acknowledge(&mut self) -> Result<(), Self::Error>;
    /// Lets `look` see the frame that [`Device::receive`] would give next; `None` if there is none.
    fn peek<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Option<T>;
    /// Whether the last [`Device::transmit`] or [`Device::receive`] had no buffer to send from. The hardware interrupts when there is one.
    fn is_starved(&self) -> bool;
    /// Lets the hardware have everything provided so far.
    fn publish(&mut self);
}

/// Whether a poll left work behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// All frames were taken.
    Done,
    /// The budget ran out: poll again after others had their turn.
    More,
}

/// Interface, device and sockets.
pub struct Stack<D> {
    interface: Interface,
    device: D,
    sockets: Sockets,
    driver: Option<Waker>,
}

impl<D: Wire> Stack<D> {
    /// A stack on `device`. `seed` makes initial sequence numbers hard to guess; `now` is the time.
    pub fn new(mut device: D, config: &Config, seed: u64, now: Instant) -> Self {
        let mut settings = InterfaceConfig::new(config.mac.into());
        settings.random_seed = seed;
        let mut interface = Interface::new(settings, &mut device, now);
        interface.update_ip_addrs(|addresses| {
            // Cannot be full: it is the first address.
            let _ = addresses.push(IpCidr::Ipv4(config.address));
        });
        // Cannot be full either: the first route.
        let _ = interface.routes_mut().add_default_ipv4_route(config.gateway);
        Self { interface, device, sockets: Sockets::new(config), driver: None }
    }

    /// Moves frames in, then out.
    pub fn poll(&mut self, now: Instant) -> Polled {
        self.interface.poll_maintenance(now);
        let polled = self.take_frames(now);
        self.send_frames(now);
        self.device.publish();
        polled
    }

    fn take_frames(&mut self, now: Instant) -> Polled {
        for _ in 0..INGRESS_BUDGET {
            let Some(slot) = self.device.peek(|frame| self.sockets.addressee(frame)) else { return Polled::Done };
            let set = self.sockets.set(slot);
            if self.interface.poll_ingress_single(now, &mut self.device, set) == PollIngressSingleResult::None {
                // No buffer for an answer; the frame waits.
                return Polled::Done;
            }
            if let Some(slot) = slot {
                self.sockets.mark_due(slot);
                self.sockets.follow(slot);
            }
        }
        Polled::More
    }

    fn send_frames(&mut self, now: Instant) {
        while let Some(slot) = self.sockets.next_due() {
            // One segment each turn; windows and buffers bound the turns.
            let set = self.sockets.set(Some(slot));
            while self.interface.poll_egress(now, &mut self.device, set) == PollResult::SocketStateChanged {}
            self.sockets.follow(slot);
            if self.device.is_starved() {
                self.sockets.mark_due(slot);
                return;
            }
        }
    }

    /// As [`Stack::poll`], and lets every socket act whose deadline has passed. Returns the next deadline too: retransmissions, delayed
    /// acknowledgements, timeouts.
    pub fn poll_deadlines(&mut self, now: Instant) -> (Polled, Option<Instant>) {
        self.sockets.mark_all_due();
        let polled = self.poll(now);
        let interface = &mut self.interface;
        (polled, self.sockets.sets_in_use().filter_map(|set| interface.poll_at(now, set)).min())
    }

    /// Works on the sockets; if that leaves something to send, the task that drives the stack is asked for a poll.
    pub fn with_sockets<T>(&mut self, work: impl FnOnce(&mut Sockets) -> T) -> T {
        let result = work(&mut self.sockets);
        if self.sockets.any_due()
            && let Some(driver) = self.driver.take()
        {
            driver.wake();
        }
        result
    }

    /// Whether there is something to send; if not, `waker` is woken when there is.
    pub fn poll_requested(&mut self, waker: &Waker) -> bool {
        // What a starved device could not take is asked for again by its interrupt.
        let requested = self.sockets.any_due() && !self.device.is_starved();
        if !requested {
            self.driver = Some(waker.clone());
        }
        requested
    }

    /// The device under the stack.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }
}
