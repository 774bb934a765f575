//! Checks that rely on the journal find what has been broken, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, REPLY_RECV};

use super::world::{UNTYPED, World};
use crate::arch::sv39::Pte;
use crate::invariants::{self, Survey};
use crate::object::cap::{Cap, FrameSize, VmRights};
use crate::object::mdb::Mdb;
use crate::object::tcb::ThreadState;
use crate::object::vspace::PageTable;

const V: u64 = 0x4000_0000;

/// A world, and a survey that has seen all of it.
struct Watched {
    w: World,
    survey: Box<Survey>,
    endpoint: u64,
    table: u64,
    page: u64,
}

impl Watched {
    fn new() -> Self {
        let mut w = World::new();
        w.check = false;
        let endpoint = w.make(ty::ENDPOINT, 0);
        w.receiver(255, endpoint);
        let (table, page) = (w.make(ty::PAGE_TABLE, 0), w.make(ty::MEGA_PAGE, 0));
        w.ok(table, RISCVPageTableMap, &[V, 0], &[slot::VSPACE]);
        w.ok(page, RISCVPageMap, &[V, 3, 0], &[slot::VSPACE]);
        let mut watched = Self { w, survey: Box::new(Survey::new()), endpoint, table, page };
        watched.look();
        watched
    }

    /// A kernel exit.
    fn look(&mut self) {
        invariants::check_changes(&self.w.k, &mut self.survey);
        self.w.k.journal.clear();
    }
}

#[test]
fn the_slots_in_use_are_those_that_a_look_everywhere_finds() {
    let mut watched = Watched::new();
    let mut everything = Box::new(Survey::new());
    for round in 0..7 {
        let w = &mut watched.w;
        let (endpoint, page) = (watched.endpoint, watched.page);
        match round {
            0 => drop(w.mint(endpoint, Rights::ALL, 7)),
            1 => w.syscall(CALL, endpoint, 1, &[2], &[]),
            2 => w.syscall(REPLY_RECV, endpoint, 3, &[], &[]),
            3 => w.revoke(endpoint),
            4 => w.delete(page),
            5 => w.revoke(UNTYPED),
            // More slots than the journal holds.
            _ => {
                let first = w.fresh();
                w.ok(UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, first + 1, 256], &[slot::CNODE]);
            }
        }
        watched.look();
        invariants::check(&watched.w.k, &mut everything);
        assert_eq!(watched.survey.len(), everything.len(), "round {round}");
    }
}

#[test]
fn what_is_broken_is_found_at_the_next_look() {
    type Break = fn(&mut Watched);
    let breaks: [(&str, Break); 5] = [
        ("is in two families", |watched| {
            let slot = watched.w.slot(watched.endpoint);
            watched.w.k.get_mut(slot).mdb = Mdb::ALONE;
        }),
        ("nobody accounts for the entry", |watched| {
            let table = watched.w.object::<PageTable>(watched.table);
            let entry = Pte::from_bits(0x2000_00DF);
            watched.w.k.get_mut(table).0[3] = entry;
        }),
        ("mapped writable, which no capability allows", |watched| {
            let (slot, cap) = (watched.w.slot(watched.page), watched.w.cap(watched.page));
            let weaker = Cap::frame(cap.address(), FrameSize::Mega, VmRights::ReadOnly, false);
            watched.w.k.get_mut(slot).cap = weaker.mapped_at(cap.mapped_asid(), cap.mapped_address());
        }),
        ("nobody accounts for the entry", |watched| {
            let slot = watched.w.slot(watched.page);
            watched.w.k.unlink(slot);
        }),
        ("a reply capability to nobody who waits", |watched| {
            watched.w.syscall(CALL, watched.endpoint, 1, &[], &[]);
            watched.look();
            let root = watched.w.root.tcb;
            watched.w.k.get_mut(root).state = ThreadState::Inactive;
        }),
    ];
    for (complaint, break_it) in breaks {
        let mut watched = Watched::new();
        break_it(&mut watched);
        let panic = catch_unwind(AssertUnwindSafe(|| watched.look())).expect_err(complaint);
        let said = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|&s| s.into()));
        assert!(said.as_deref().is_some_and(|said| said.contains(complaint)), "{said:?} in place of {complaint}");
    }
}
