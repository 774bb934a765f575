//! Doorbell bits as futures: how a device interrupt wakes a coroutine.
//!
//! A bit that comes while nobody waits is latched, so it is not lost; bits that come twice before anybody looks are one event,
//! as with the device line itself. Bits of channels are latched too, and nobody asks for them.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::bell::Doze;
use crate::executor::{Link, Wait};

/// The bits of a doorbell.
#[derive(Default)]
pub struct Events {
    latched: Cell<u64>,
    waiting: RefCell<Vec<(u32, Waker)>>,
}

impl Events {
    /// No bit has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Resolves when bit `bit` of the doorbell has come since the last time it resolved.
    ///
    /// # Panics
    /// If there is no such bit.
    pub fn event(&self, bit: u32) -> Event<'_> {
        assert!(bit < 64, "a doorbell has 64 bits");
        Event { events: self, bit }
    }
}

impl Link for Events {
    fn poll(&self, bits: u64) -> bool {
        if bits == 0 {
            return false;
        }
        self.latched.set(self.latched.get() | bits);
        // Each waker is called with nothing borrowed: it may run foreign code.
        while let Some(waker) = self.next_waiting(bits) {
            waker.wake();
        }
        true
    }

    fn publish(&self) {}

    fn doze(&self, _: Doze) {}

    fn is_ready(&self) -> bool {
        false
    }

    fn waits(&self, visit: &mut dyn FnMut(Wait, &Waker)) {
        self.waiting.borrow().iter().for_each(|(bit, waker)| visit(Wait::Event { bit: *bit }, waker));
    }
}

impl Events {
    fn next_waiting(&self, bits: u64) -> Option<Waker> {
        let mut waiting = self.waiting.borrow_mut();
        let index = waiting.iter().position(|(bit, _)| bits >> bit & 1 != 0)?;
        Some(waiting.swap_remove(index).1)
    }
}

/// One bit to come.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Event<'e> {
    events: &'e Events,
    bit: u32,
}

impl Future for Event<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let latched = self.events.latched.get();
        if latched >> self.bit & 1 != 0 {
            self.events.latched.set(latched & !(1 << self.bit));
            return Poll::Ready(());
        }
        let mut waiting = self.events.waiting.borrow_mut();
        match waiting.iter_mut().find(|(bit, waker)| *bit == self.bit && waker.will_wake(context.waker())) {
            Some(_) => (),
            None => waiting.push((self.bit, context.waker().clone())),
        }
        Poll::Pending
    }
}
