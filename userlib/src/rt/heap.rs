//! The global allocator: a buddy allocator over the heap region of the manifest.

use super::lock::Lock;
use buddy_system_allocator::Heap as Buddy;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

/// Largest block: 2^31 bytes, beyond any heap that a manifest may ask for.
const ORDERS: usize = 32;

struct Heap(Lock<Buddy<ORDERS>>);

#[global_allocator]
static HEAP: Heap = Heap(Lock::new(Buddy::new()));

/// Gives memory to the allocator.
///
/// # Safety
/// The range must be mapped, writable, used by nothing else, and stay so.
pub unsafe fn add(start: usize, size: usize) {
    // SAFETY: passed on to the caller.
    unsafe { HEAP.0.lock().add_to_heap(start, start + size) }
}

/// Bytes that the program has asked for and not given back.
pub fn used() -> usize {
    HEAP.0.lock().stats_alloc_user()
}

// SAFETY: the buddy allocator hands out disjoint blocks of at least the size and alignment of the layout, from memory that `add`
// vouched for; the lock serialises the threads.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.lock().alloc(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller got `block` from `alloc` with this layout.
            unsafe { self.0.lock().dealloc(block, layout) }
        }
    }
}
