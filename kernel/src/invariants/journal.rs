//! What has been opened for change since the last check, so that a check at every kernel exit need not look at everything.
//!
//! Kernel objects are changed through [`Kernel::get_mut`](crate::state::Kernel) only, which writes this down. What a check depends
//! on and nobody has opened is as it was when it was last checked, so the answer is too.

use crate::mem::Ref;
use crate::object::cap::{Cte, Kind};

const SLOTS: usize = 256;

/// Memory of the changes.
#[derive(Debug)]
pub struct Journal {
    slots: [Option<Ref<Cte>>; SLOTS],
    count: usize,
    /// There were more slots than places.
    overflow: bool,
    /// Page tables, ASID pools, or capabilities to memory, before the change or after it.
    spaces: bool,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal {
    /// Anything may have changed.
    pub const fn new() -> Self {
        Self { slots: [None; SLOTS], count: 0, overflow: true, spaces: true }
    }

    /// A slot is opened that holds a capability of this kind.
    pub fn slot_opened(&mut self, slot: Ref<Cte>, kind: Kind) {
        self.spaces |= concerns_spaces(kind);
        if self.count > 0 && self.slots[self.count - 1] == Some(slot) {
            return;
        }
        match self.slots.get_mut(self.count) {
            Some(place) => (*place, self.count) = (Some(slot), self.count + 1),
            None => self.overflow = true,
        }
    }

    /// A page table or an ASID pool is opened.
    pub fn space_opened(&mut self) {
        self.spaces = true;
    }

    /// The slots that were opened; `None`: all may have been.
    pub fn slots(&self) -> Option<impl Iterator<Item = Ref<Cte>>> {
        (!self.overflow).then(|| self.slots[..self.count].iter().flatten().copied())
    }

    /// Whether slots were opened.
    pub fn any_slots(&self) -> bool {
        self.overflow || self.count > 0
    }

    /// Whether address spaces may have changed, by what was opened; `now` tells the kind that a slot has now.
    pub fn any_spaces(&self, now: impl Fn(Ref<Cte>) -> Kind) -> bool {
        self.spaces
            || self.overflow
            || self.slots[..self.count].iter().flatten().any(|&slot| concerns_spaces(now(slot)))
    }

    /// All of it has been checked.
    pub fn clear(&mut self) {
        (self.count, self.overflow, self.spaces) = (0, false, false);
    }
}

const fn concerns_spaces(kind: Kind) -> bool {
    matches!(kind, Kind::Frame | Kind::PageTable | Kind::AsidPool)
}
