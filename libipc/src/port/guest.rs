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
//!
//! A peer of the same hart cannot run before this thread waits or is preempted. So a signal to it is *owed* until the executor
//! parks: then one system call, SignalRecv, wakes it and waits, and the kernel switches to it directly. If the executor goes on instead,
//! what is owed is signalled at the end of the round.

use alloc::rc::Rc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uintr::entry::{self, Inbox};
use userlib::Env;
use userlib::cap::{CPtr, Cap, Notification, slot};
use userlib::env::{Role, Transport};
use userlib::syscall;

use crate::bell::Ring;
use crate::mailbox::Mailbox;
use crate::port::clock::take_alarm;
use crate::port::endpoint::EndpointServer;
use crate::port::{Patience, Port};

/// Where the handler puts the bits of thread 0, the only thread with a doorbell.
static INBOX: Inbox = Inbox::new();
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The doorbell that thread 0 owes a signal; 0 for none. An atomic only because it is a static: nobody else touches it.
static OWED: AtomicU64 = AtomicU64::new(CPtr::NULL.0);

/// What is owed, owed no more.
#[inline] // once per round: a load and a branch
fn take_owed() -> Option<Notification> {
    match OWED.load(Ordering::Relaxed) {
        0 => None,
        peer => {
            OWED.store(CPtr::NULL.0, Ordering::Relaxed);
            Some(Notification(CPtr(peer)))
        }
    }
}

fn settle() {
    if let Some(peer) = take_owed() {
        peer.signal();
    }
}

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

    /// Waits where this program waits, until the alarm at most.
    #[inline] // as `park`
    fn wait(&self) -> u64 {
        if let Some(endpoint) = &self.endpoint {
            settle();
            return endpoint.park(take_alarm());
        }
        match (take_owed(), take_alarm()) {
            (Some(peer), None) => slot::DOORBELL.wait_signalling(peer),
            (None, None) => slot::DOORBELL.wait(),
            (owed, Some(until)) => {
                let owed = owed.map_or(CPtr::NULL, Notification::cptr);
                syscall::wait_until(owed, slot::DOORBELL.cptr(), until)
            }
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

    #[inline] // the only call of the idle path should be the trap
    fn park(&self) -> u64 {
        if !self.user_interrupts {
            return self.wait();
        }
        uintr::csr::disable();
        let bits = match INBOX.take() {
            0 => self.wait(),
            bits => {
                self.flush();
                bits
            }
        };
        uintr::csr::enable();
        bits
    }

    #[inline] // once per round: two loads and branches
    fn flush(&self) {
        settle();
        if let Some(endpoint) = &self.endpoint {
            endpoint.flush();
        }
    }

    #[inline] // one load
    fn owes(&self) -> bool {
        OWED.load(Ordering::Relaxed) != CPtr::NULL.0
    }

    fn patience(&self) -> Patience {
        if self.endpoint.is_some() {
            return Patience::NONE;
        }
        // A second hart may make the peer answer while this one looks; on a single hart looking only delays the peer.
        // The counts are small multiples of a kernel round trip (about a thousand cycles at ten to twenty per look).
        if self.harts > 1 { Patience { polls: 256, watches: 1024 } } else { Patience::NONE }
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
    is_here: bool,
    channel: usize,
}

impl Peer {
    /// The other end of the channel with number `channel`, behind `notification`, which runs on `hart`. Where user interrupts are there, it goes into the sender table; if
    /// the kernel refuses (table full, peer without receiver), signals do the same, slower.
    pub fn new(env: &Env, notification: Notification, hart: usize, channel: usize) -> Self {
        let index =
            if env.user_interrupts() { slot::SENDER_TABLE.register(notification).ok().map(|i| i as u64) } else { None };
        Self { notification, index, is_here: hart == env.hart(), channel }
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

    fn accuse(&self) {
        userlib::rt::accuse(self.channel as u64);
    }

    #[inline] // a store if the peer is here
    fn signal_at_park(&self) {
        if !self.is_here {
            return self.signal();
        }
        let cptr = self.notification.cptr().0;
        // Only one is switched to: the one owed before, if it is another, is made ready now. No swap: nobody else writes.
        let before = OWED.load(Ordering::Relaxed);
        OWED.store(cptr, Ordering::Relaxed);
        if before != CPtr::NULL.0 && before != cptr {
            Notification(CPtr(before)).signal();
        }
    }
}
