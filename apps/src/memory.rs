//! The messages between the memory server and its client.
//!
//! Words 0 and 1 are the number of a page and of a place in the client's window; word 0 of the reply is 0 or the kernel's error.

/// Maps a page at a place.
pub const MAP: u16 = 1;
/// Takes a page away from where it is.
pub const UNMAP: u16 = 2;
/// Takes a page away from where it is and maps it at a place; nothing of it is undone if that is refused.
pub const MOVE: u16 = 3;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Where places begin: behind everything that the image builder maps (`images/src/plan.rs`), under one page table.
const START: u64 = 0x7F00_0000;

/// Where the client has its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pages: u64,
}

impl Window {
    /// Places for `pages` pages.
    ///
    /// # Panics
    /// If one page table does not reach so far.
    pub const fn new(pages: u64) -> Self {
        assert!(pages <= 512, "one page table reaches 512 pages");
        Self { pages }
    }

    /// How many places there are.
    pub const fn pages(self) -> u64 {
        self.pages
    }

    /// The address of a place.
    pub const fn address(self, place: u64) -> u64 {
        START + place * PAGE
    }
}
