//! A value that boot sets and everybody reads.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const SETTING: u8 = 1;
const SET: u8 = 2;

/// Set once, then shared.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one caller that moved `state` from EMPTY to SETTING, and read only after SET.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// Empty.
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Sets the value.
    ///
    /// # Panics
    /// If it was set before.
    pub fn set(&self, value: T) {
        let first = self.state.compare_exchange(EMPTY, SETTING, Ordering::Relaxed, Ordering::Relaxed);
        assert!(first.is_ok(), "set twice");
        // SAFETY: only the caller that got here may write, and nobody reads before SET.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(SET, Ordering::Release);
    }

    /// The value, once it is set.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: SET is stored after the value was written, and the value is never written again.
        (self.state.load(Ordering::Acquire) == SET).then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_set() {
        let once = Once::new();
        assert_eq!(once.get(), None);
        once.set(7);
        assert_eq!(once.get(), Some(&7));
    }

    #[test]
    #[should_panic(expected = "set twice")]
    fn is_set_once() {
        let once = Once::new();
        once.set(1);
        once.set(2);
    }
}
