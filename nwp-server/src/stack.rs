//! The TCP/IP stack: one smoltcp interface over one device.
//!
//! [`Stack::poll`] is the only place where frames move. It takes at most [`INGRESS_BUDGET`] frames, lets every socket send, and rings the
//! device's doorbells once. Received data wakes the futures that wait for it, through the wakers that smoltcp keeps for each socket.
//! Who queues something to send ([`Stack::with_sockets`]) does not send it: the task that drives the stack is woken and polls it when its
//! turn comes, so that the writes of one round leave together.

use core::task::Waker;

use drivers::axinic;
use smoltcp::iface::{Config as InterfaceConfig, Interface, PollIngressSingleResult, PollResult};
use smoltcp::phy::Device;
use smoltcp::time::Instant;
use smoltcp::wire::IpCidr;

use crate::config::{Config, INGRESS_BUDGET};
use crate::socket::Sockets;

/// A device that collects what it is given and lets the hardware have it on request.
pub trait Wire: Device {
    /// Acknowledges the hardware's interrupts, and brings hardware that has stopped back to life. To be called before
    /// [`Device::receive`] is, or a frame could be missed. Errors: it does not come back.
    fn acknowledge(&mut self) -> Result<(), axinic::Error>;
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
    requested: bool,
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
        Self { interface, device, sockets: Sockets::new(config), driver: None, requested: false }
    }

    /// Moves frames in, then out.
    pub fn poll(&mut self, now: Instant) -> Polled {
        self.requested = false;
        let set = &mut self.sockets;
        self.interface.poll_maintenance(now);
        let mut polled = Polled::More;
        for _ in 0..INGRESS_BUDGET {
            let result = self.interface.poll_ingress_single(now, &mut self.device, set.tcp());
            // A listener that took this frame's SYN needs another socket before the next frame.
            set.tidy();
            if result == PollIngressSingleResult::None {
                polled = Polled::Done;
                break;
            }
        }
        // Each turn sends at most one segment of each socket; windows bound the number of turns.
        while self.interface.poll_egress(now, &mut self.device, set.tcp()) == PollResult::SocketStateChanged {}
        set.tidy();
        self.device.publish();
        polled
    }

    /// When the stack has to be polled next even if nothing happens: retransmissions, delayed acknowledgements, timeouts.
    pub fn poll_at(&mut self, now: Instant) -> Option<Instant> {
        self.interface.poll_at(now, self.sockets.tcp())
    }

    /// Works on the sockets; if that leaves something to send, the task that drives the stack is asked for a poll.
    pub fn with_sockets<T>(&mut self, work: impl FnOnce(&mut Sockets) -> T) -> T {
        let result = work(&mut self.sockets);
        if self.sockets.take_to_send() {
            self.requested = true;
            if let Some(driver) = self.driver.take() {
                driver.wake();
            }
        }
        result
    }

    /// Whether a poll was asked for; if not, `waker` is woken when one is.
    pub fn poll_requested(&mut self, waker: &Waker) -> bool {
        if !self.requested {
            self.driver = Some(waker.clone());
        }
        self.requested
    }

    /// The device under the stack.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }
}
