//! A guest's doorbell: one notification, and the user interrupts that stand for it where the machine has them.
//!
//! The root task binds the doorbell to thread 0 and gives it a receiver and a sender table; the environment says whether it
//! did. Then a running thread is reached by `uipi.send`: its handler ORs the bits into `INBOX` ([`uintr::entry::collect`])
//! and the executor finds them there with one load. A thread that waits in the kernel is reached by `Signal`.
//! Badge bit = vector, so both ways give the same bits.
//!
//! A program that serves synchronous channels waits on its endpoint instead ([`crate::port::endpoint`]); the doorbell's bits
//! arrive there too.
//!
//! Between the last look at the inbox and the wait, user interrupts are off: what arrives then stays pending in the receiver,
//! and `Wait` collects it.

use alloc::rc::Rc;
use core::sync::atomic::{AtomicBool, Ordering};

use uintr::entry::{self, Inbox};
use userlib::Env;
use userlib::cap::{Notification, slot};
use userlib::env::{Role, Transport};
use userlib::syscall;

use crate::bell::Ring;
use crate::mailbox::Mailbox;
use crate::port::endpoint::EndpointServer;
use crate::port::{Patience, Port};

/// Where the handler puts the bits of thread 0, the only thread with a doorbell.
static INBOX: Inbox = Inbox::new();
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The port of thread 0.
pub struct GuestPort {
    user_interrupts: bool,
    harts: usize,
    /// Where it waits, if the program serves synchronous channels.
    endpoint: Option<EndpointServer>,
}

impl GuestPort {
    /// The doorbell of this program. Installs the user-interrupt handler the first time. Only thread 0 may run an executor.
    pub fn from_env(env: &Env) -> Self {
        let user_interrupts = env.user_interrupts();
        if user_interrupts && !INSTALLED.swap(true, Ordering::Relaxed) {
            entry::collect(&INBOX);
            uintr::insn::activate();
        }
        let endpoint = env
            .channels()
            .any(|channel| channel.role == Role::Server && matches!(channel.transport, Transport::Sync { .. }))
            .then(|| EndpointServer::new(env));
        Self { user_interrupts, harts: env.harts(), endpoint }
    }

    /// Where the server over the endpoint finds its requests.
    pub(crate) fn mailbox(&self) -> Option<Rc<Mailbox>> {
        self.endpoint.as_ref().map(EndpointServer::mailbox)
    }

    /// Waits where this program waits.
    fn wait(&self) -> u64 {
        match &self.endpoint {
            Some(endpoint) => endpoint.park(),
            None => slot::DOORBELL.wait(),
        }
    }
}

impl Port for GuestPort {
    #[inline] // once per round: a load and a branch
    fn take(&self) -> u64 {
        if self.user_interrupts { INBOX.take() } else { 0 }
    }

    #[inline] // one load
    fn can_arm(&self) -> bool {
        self.user_interrupts
    }

    fn relax(&self) {
        syscall::yield_now();
    }

    fn park(&self) -> u64 {
        if !self.user_interrupts {
            return self.wait();
        }
        uintr::csr::disable();
        let bits = match INBOX.take() {
            0 => self.wait(),
            bits => bits,
        };
        uintr::csr::enable();
        bits
    }

    fn flush(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.flush();
        }
    }

    fn patience(&self) -> Patience {
        if self.endpoint.is_some() {
            return Patience::NONE;
        }
        // A second hart may make the peer answer while this one looks; on a single hart looking only delays the peer.
        // The counts are small multiples of a kernel round trip (about a thousand cycles at ten to twenty per look).
        if self.harts > 1 {
            Patience { polls: 256, watches: 1024, yields: 0 }
        } else {
            Patience { polls: 0, watches: 0, yields: 2 }
        }
    }

    fn user_interrupts(&self) -> u64 {
        INBOX.interrupts()
    }
}

/// The doorbell of the other end of a channel.
#[derive(Clone, Copy)]
pub struct Peer {
    notification: Notification,
    index: Option<u64>,
}

impl Peer {
    /// The peer behind `notification`. Where user interrupts are there, it goes into the sender table; if the kernel refuses
    /// (table full, peer without receiver), signals do the same, slower.
    pub fn new(env: &Env, notification: Notification) -> Self {
        let index =
            if env.user_interrupts() { slot::SENDER_TABLE.register(notification).ok().map(|i| i as u64) } else { None };
        Self { notification, index }
    }
}

impl Ring for Peer {
    #[inline] // one instruction where it matters
    fn interrupt(&self) {
        match self.index {
            Some(index) => uintr::insn::send(index),
            None => self.notification.signal(),
        }
    }

    #[inline] // one system call
    fn signal(&self) {
        self.notification.signal();
    }
}
