//! Threads of a host program: a doorbell is a word and a condition variable.
//!
//! There are no user interrupts, but a thread can be reached while it runs (the word is set), so Armed works as on a machine
//! that has them, and the whole protocol is exercised.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::bell::Ring;
use crate::port::{Patience, Port};

/// The doorbell of one thread.
#[derive(Default)]
struct Doorbell {
    bits: AtomicU64,
    interrupts: AtomicU64,
    lock: Mutex<()>,
    rung: Condvar,
}

/// The port of one thread.
#[derive(Clone, Default)]
pub struct ThreadPort {
    doorbell: Arc<Doorbell>,
}

impl ThreadPort {
    /// A port whose doorbell is silent.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a peer needs to set bit `vector` of this doorbell.
    ///
    /// # Panics
    /// If there is no such vector.
    pub fn peer(&self, vector: u32) -> Peer {
        assert!(vector < 64, "a doorbell has 64 vectors");
        Peer { doorbell: self.doorbell.clone(), bit: 1 << vector }
    }
}

/// Bit `vector` of another thread's doorbell.
#[derive(Clone)]
pub struct Peer {
    doorbell: Arc<Doorbell>,
    bit: u64,
}

impl Ring for Peer {
    fn interrupt(&self) {
        self.doorbell.interrupts.fetch_add(1, Ordering::Relaxed);
        self.doorbell.bits.fetch_or(self.bit, Ordering::SeqCst);
    }

    fn signal(&self) {
        // A panic elsewhere leaves nothing half done under this lock.
        let _guard = self.doorbell.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.doorbell.bits.fetch_or(self.bit, Ordering::SeqCst);
        self.doorbell.rung.notify_one();
    }
}

impl Port for ThreadPort {
    fn take(&self) -> u64 {
        self.doorbell.bits.swap(0, Ordering::SeqCst)
    }

    fn can_arm(&self) -> bool {
        true
    }

    fn park(&self) -> u64 {
        let mut guard = self.doorbell.lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let bits = self.take();
            if bits != 0 {
                return bits;
            }
            guard = self.doorbell.rung.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn patience(&self) -> Patience {
        Patience { polls: 16, watches: 16 }
    }

    fn user_interrupts(&self) -> u64 {
        self.doorbell.interrupts.load(Ordering::Relaxed)
    }
}
