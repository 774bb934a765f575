//! A lock between the threads of one program. A thread that finds it taken yields, so that a holder of the same hart and priority
//! gets to run; threads of one program have the same priority, so nobody starves.

use crate::syscall;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value that one thread at a time may use. Not for handlers of user interrupts: they could interrupt the holder.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `lock` gives the value to one thread at a time, so sharing the lock only moves the value between threads.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    pub fn lock(&self) -> Guard<'_, T> {
        // Acquire pairs with the release in `drop`: what the last holder wrote is seen.
        while self.taken.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            syscall::yield_now();
        }
        Guard { lock: self }
    }

    /// The value, if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire as in `lock`.
        let free = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then(|| Guard { lock: self })
    }
}

/// The value, until dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so nobody else has a reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_frees_the_lock() {
        let lock = Lock::new(1);
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_eq!(lock.try_lock().map(|value| *value), Some(2));
    }
}
