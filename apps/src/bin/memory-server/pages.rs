//! The pages that the client may have, and where.

use apps::memory::Window;
use userlib::cap::{
    Attributes, CPtr, Code, Error, Frame, ObjectType, PageTable, Request, Result, Rights, VSpace, slot,
};
use userlib::env::Env;

/// Frames in successive slots, and a window of the client's address space.
#[derive(Clone, Copy)]
pub struct Pages {
    first: u64,
    window: Window,
    space: VSpace,
}

impl Pages {
    /// Makes `count` frames of the program's untyped memory, and the page tables above the window of `space`.
    pub fn new(env: &Env, count: u64, space: VSpace) -> Result<Self> {
        let Some(memory) = env.untyped() else { panic!("the manifest gives no untyped memory") };
        let slots = env.reply_slots();
        // After a restart: what was made before is there still.
        slot::CNODE.slot(memory.untyped.0.0).revoke()?;
        memory.untyped.retype(ObjectType::Frame, slot::CNODE.slot(slots.first), count)?;
        let pages = Self { first: slots.first, window: Window::new(count), space };
        let mut next = slots.first + count;
        while let Err(error) = pages.mapping(0, 0).call() {
            let Error { code: Code::FailedLookup, .. } = error else { return Err(error) };
            memory.untyped.retype(ObjectType::PageTable, slot::CNODE.slot(next), 1)?;
            PageTable(CPtr(next)).map(space, pages.window.address(0))?;
            next += 1;
        }
        pages.frame(0).unmap()?;
        Ok(pages)
    }

    /// A page.
    pub fn frame(self, page: u64) -> Frame {
        Frame(CPtr(self.first + page))
    }

    /// To map a page at a place.
    pub fn mapping(self, page: u64, place: u64) -> Request<3, 1> {
        self.frame(page).to_map(self.space, self.window.address(place), Rights::READ_WRITE, Attributes::ExecuteNever)
    }

    /// Page and place of a message; neither is believed.
    pub fn arguments(self, words: &[u64]) -> Option<(u64, u64)> {
        let (&page, &place) = (words.first()?, words.get(1)?);
        (page < self.window.pages() && place < self.window.pages()).then_some((page, place))
    }
}
