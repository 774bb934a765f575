//! A heap that only grows: the driver allocates at set-up only.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const BYTES: usize = 16 << 10;

#[repr(C, align(64))]
struct Heap {
    bytes: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: pieces handed out do not overlap (`used` only grows), and nothing else touches `bytes`.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { bytes: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) };

// SAFETY: every piece lies in `bytes`, is aligned (the array is to 64, and larger alignments are refused) and given once.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.used.load(Relaxed).next_multiple_of(layout.align());
        let end = start + layout.size();
        if end > BYTES || layout.align() > 64 {
            return core::ptr::null_mut();
        }
        self.used.store(end, Relaxed);
        self.bytes.get().cast::<u8>().wrapping_add(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
