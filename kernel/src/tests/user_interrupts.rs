//! Receivers, sender tables and doorbells.

use abi::bootinfo::slot;
use abi::extension::*;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{NB_RECV, RECV, SEND, YIELD};
use uintr::format::SenderEntry;

use super::world::{Thread, World, with_receivers};
use crate::arch::Interrupt;
use crate::arch::host::Effect;
use crate::arch::register::A0;
use crate::object::notification::Notification;
use crate::object::sender_table::SenderTable;
use crate::object::tcb::ThreadState::*;

/// A doorbell (notification bound to the thread, with a receiver), a capability to it with badge `1 << 5`, and an empty table.
struct Bell {
    w: World,
    thread: Thread,
    bell: u64,
    badged: u64,
    table: u64,
}

fn bell() -> Bell {
    let mut w = with_receivers(8);
    let bell = w.make(ty::NOTIFICATION, 0);
    let thread = w.thread(100);
    w.ok(thread.slot, TCBBindNotification, &[], &[bell]);
    assert_eq!(w.call(thread.slot, TCB_BIND_USER_INTERRUPT, &[], &[bell]), (0, vec![]));
    let badged = w.mint(bell, Rights::WRITE, 1 << 5);
    let table = w.make(SENDER_TABLE, 0);
    Bell { w, thread, bell, badged, table }
}

impl Bell {
    fn entry(&self, index: usize) -> SenderEntry {
        SenderEntry::from_bits(self.w.k.get(self.w.object::<SenderTable>(self.table)).entries[index])
    }
    fn receiver(&self) -> u16 {
        self.w.k.get(self.w.object::<Notification>(self.bell)).receiver()
    }
    fn register(&mut self, cap: u64) -> (u64, Vec<u64>) {
        self.w.call(self.table, SENDER_TABLE_REGISTER, &[], &[cap])
    }
}

#[test]
fn refusals() {
    let mut w = World::new();
    let (ntfn, thread) = (w.make(ty::NOTIFICATION, 0), w.thread(10));
    assert_eq!(w.call(thread.slot, TCB_BIND_USER_INTERRUPT, &[], &[ntfn]), (3, vec![]), "no UINTC");

    let Bell { mut w, thread, bell, badged, table } = bell();
    let two_bits = w.mint(bell, Rights::ALL, 3);
    let read = w.mint(bell, Rights::READ, 2);
    let quiet = w.make(ty::NOTIFICATION, 0);
    let quiet_badged = w.mint(quiet, Rights::ALL, 2);
    let other = w.thread(10);
    for (name, cptr, label, words, caps, expected) in [
        ("no cap", thread.slot, TCB_BIND_USER_INTERRUPT, &[][..], &[][..], (7, vec![])),
        ("not a notification", other.slot, TCB_BIND_USER_INTERRUPT, &[], &[thread.slot], (2, vec![1])),
        ("without Read", other.slot, TCB_BIND_USER_INTERRUPT, &[], &[badged], (2, vec![1])),
        ("thread has one", thread.slot, TCB_BIND_USER_INTERRUPT, &[], &[quiet], (3, vec![])),
        ("notification has one", other.slot, TCB_BIND_USER_INTERRUPT, &[], &[bell], (3, vec![])),
        ("nothing to unbind", other.slot, TCB_UNBIND_USER_INTERRUPT, &[], &[], (3, vec![])),
        ("not a table", thread.slot, TCB_SET_SENDER_TABLE, &[], &[bell], (2, vec![1])),
        ("table missing", thread.slot, TCB_SET_SENDER_TABLE, &[], &[], (7, vec![])),
        ("two bits", table, SENDER_TABLE_REGISTER, &[], &[two_bits], (1, vec![0])),
        ("no badge", table, SENDER_TABLE_REGISTER, &[], &[bell], (1, vec![0])),
        ("without Write", table, SENDER_TABLE_REGISTER, &[], &[read], (2, vec![1])),
        ("no receiver", table, SENDER_TABLE_REGISTER, &[], &[quiet_badged], (2, vec![1])),
        ("a thread", table, SENDER_TABLE_REGISTER, &[], &[thread.slot], (2, vec![1])),
        ("no cap", table, SENDER_TABLE_REGISTER, &[], &[], (7, vec![])),
        ("index 128", table, SENDER_TABLE_UNREGISTER, &[128], &[], (4, vec![0, 127])),
        ("no index", table, SENDER_TABLE_UNREGISTER, &[], &[], (7, vec![])),
    ] {
        assert_eq!(w.call(cptr, label, words, caps), expected, "{name}");
    }
}

#[test]
fn an_entry_names_receiver_and_vector_and_the_table_fills_up() {
    let mut b = bell();
    assert_eq!(b.register(b.badged), (0, vec![0]));
    let entry = b.entry(0);
    assert_eq!((entry.valid(), entry.receiver(), entry.vector()), (true, b.receiver(), 5));
    b.w.check = false;
    for index in 1..SENDER_TABLE_ENTRIES as u64 {
        assert_eq!(b.register(b.badged), (0, vec![index]));
    }
    b.w.check_invariants();
    assert_eq!(b.register(b.badged), (8, vec![]));
    assert_eq!(b.w.call(b.table, SENDER_TABLE_UNREGISTER, &[7], &[]), (0, vec![]));
    assert!(!b.entry(7).valid());
    assert_eq!(b.register(b.badged), (0, vec![7]));
}

#[test]
fn entries_beyond_the_slots_are_never_valid() {
    let mut b = bell();
    let second = b.w.make(SENDER_TABLE, 0);
    for _ in 0..3 {
        b.register(b.badged);
        assert_eq!(b.w.call(second, SENDER_TABLE_REGISTER, &[], &[b.badged]).0, 0);
    }
    for table in [b.table, second] {
        let base = b.w.cap(table).paddr().0 - crate::arch::host::ARENA.0;
        let page = &b.w.k.arch.memory()[base as usize..][..4096];
        let valid = page.chunks(8).enumerate().filter(|(_, word)| word[0] & 1 != 0).map(|(index, _)| index);
        assert_eq!(valid.collect::<Vec<_>>(), [0, 1, 2]);
    }
}

#[test]
fn deleting_or_revoking_the_capability_clears_its_entries_only() {
    let mut b = bell();
    let other = b.w.mint(b.bell, Rights::WRITE, 1 << 6);
    let copy = b.w.copy(b.badged, Rights::ALL);
    for cap in [b.badged, other, copy, b.badged] {
        b.register(cap);
    }
    // A copy made after the registration does not come between the capability and its entries.
    b.w.copy(b.badged, Rights::ALL);
    b.w.delete(b.badged);
    assert_eq!([0, 1, 2, 3].map(|index| b.entry(index).valid()), [false, true, true, false]);
    b.w.effects();
    b.w.revoke(b.bell);
    assert_eq!([1, 2].map(|index| b.entry(index).valid()), [false, false]);
    assert!(b.w.effects().contains(&Effect::FenceSenders));
    assert_ne!(b.receiver(), 0, "the doorbell itself stays");
    // A copy of a copy has no children in the tree, but its entries go when it is revoked.
    let badged = b.w.mint(b.bell, Rights::WRITE, 1 << 5);
    let copy = b.w.copy(badged, Rights::ALL);
    assert_eq!((b.register(badged), b.register(copy)), ((0, vec![0]), (0, vec![1])));
    b.w.revoke(copy);
    assert_eq!([0, 1].map(|index| b.entry(index).valid()), [true, false]);
}

#[test]
fn the_receiver_goes_with_thread_notification_or_unbind_and_its_entries_before_it() {
    type End = fn(&mut Bell);
    let ends: [End; 4] = [
        |b| assert_eq!(b.w.call(b.thread.slot, TCB_UNBIND_USER_INTERRUPT, &[], &[]), (0, vec![])),
        |b| b.w.delete(b.thread.slot),
        |b| {
            b.w.delete(b.badged);
            b.w.delete(b.bell);
        },
        |b| b.w.revoke(super::world::UNTYPED),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut b = bell();
        let receiver = b.receiver();
        b.register(b.badged);
        b.w.effects();
        end(&mut b);
        assert!(b.w.k.receivers[usize::from(receiver)].notification.is_none(), "end {number}");
        let effects = b.w.effects();
        let reset = effects.iter().position(|&effect| effect == Effect::ResetReceiver(receiver));
        let fence = effects.iter().position(|&effect| effect == Effect::FenceSenders);
        assert!(fence < reset && reset.is_some(), "end {number}: {effects:?}");
    }
}

#[test]
fn receivers_do_not_run_out() {
    let mut w = with_receivers(4);
    let ntfn = w.make(ty::NOTIFICATION, 0);
    w.check = false;
    for _ in 0..10_000 {
        assert_eq!(w.call(w.root.slot, TCB_BIND_USER_INTERRUPT, &[], &[ntfn]).0, 0);
        assert_eq!(w.call(w.root.slot, TCB_UNBIND_USER_INTERRUPT, &[], &[]).0, 0);
    }
    // Receiver 0 stands for none, so three are left of four.
    for expected in [0, 0, 0, 10] {
        let (ntfn, thread) = (w.make(ty::NOTIFICATION, 0), w.thread(10));
        assert_eq!(w.call(thread.slot, TCB_BIND_USER_INTERRUPT, &[], &[ntfn]).0, expected);
    }
}

#[test]
fn a_wait_on_a_doorbell_takes_pending_bits_before_it_blocks() {
    let mut b = bell();
    let receiver = usize::from(b.receiver());
    b.w.resume(b.thread);
    let bell = b.bell;
    b.w.k.arch.posted[receiver] = 1 << 9;
    b.w.run_as(b.thread, |w| w.syscall(RECV, bell, 0, &[], &[]));
    assert_eq!((b.w.state(b.thread), b.w.register(b.thread, A0)), (Running, 1 << 9));
    b.w.k.arch.posted[receiver] = 2;
    b.w.run_as(b.thread, |w| w.syscall(NB_RECV, bell, 0, &[], &[]));
    assert_eq!(b.w.register(b.thread, A0), 2);
    b.w.run_as(b.thread, |w| w.syscall(RECV, bell, 0, &[], &[]));
    assert_eq!(b.w.state(b.thread), BlockedOnNotification);
    assert_eq!(b.w.k.arch.posted[receiver], 0);
}

#[test]
fn a_signal_wakes_a_blocked_thread_and_posts_to_a_running_one() {
    let mut b = bell();
    let (receiver, bell) = (b.receiver(), b.bell);
    b.w.resume(b.thread);
    b.w.run_as(b.thread, |w| w.syscall(RECV, bell, 0, &[], &[]));
    b.w.effects();
    b.w.syscall(SEND, b.badged, 0, &[], &[]);
    assert_eq!((b.w.state(b.thread), b.w.register(b.thread, A0)), (Running, 1 << 5));
    assert!(!b.w.effects().iter().any(|effect| matches!(effect, Effect::PostReceiver(..))), "it has the bits already");
    b.w.syscall(SEND, b.badged, 0, &[], &[]);
    assert!(b.w.effects().contains(&Effect::PostReceiver(receiver, 1 << 5)));
    // Word and receiver hold the same bit; one wait takes both.
    b.w.run_as(b.thread, |w| w.syscall(RECV, bell, 0, &[], &[]));
    assert_eq!(b.w.register(b.thread, A0), 1 << 5);
    b.w.run_as(b.thread, |w| w.syscall(NB_RECV, bell, 0, &[], &[]));
    assert_eq!(b.w.register(b.thread, A0), 0);
}

#[test]
fn only_threads_with_user_interrupts_are_switched() {
    let mut b = bell();
    let receiver = b.receiver();
    let plain = b.w.thread(100);
    b.w.effects();
    b.w.resume(plain);
    b.w.ok(b.w.root.slot, TCBSetPriority, &[100], &[b.w.root.slot]);
    assert_eq!(b.w.effects(), []);
    b.w.resume(b.thread);
    let mut seen = Vec::new();
    for _ in 0..6 {
        b.w.syscall(YIELD, 0, 0, &[], &[]);
        seen.extend(b.w.effects());
    }
    let load = [Effect::LoadUserInterrupts(receiver), Effect::UnloadUserInterrupts(receiver)];
    assert_eq!(seen[..4], [load, load].concat());
}

#[test]
fn an_idle_core_has_no_user_interrupt_state() {
    let mut b = bell();
    let (receiver, bell) = (b.receiver(), b.bell);
    let quiet = b.w.make(ty::NOTIFICATION, 0);
    b.w.resume(b.thread);
    b.w.effects();
    b.w.syscall(RECV, quiet, 0, &[], &[]);
    assert!(b.w.runs(b.thread));
    b.w.syscall(RECV, bell, 0, &[], &[]);
    assert_eq!(b.w.running(), None);
    assert_eq!(b.w.effects(), [Effect::LoadUserInterrupts(receiver), Effect::UnloadUserInterrupts(receiver)]);
}

#[test]
fn a_table_is_in_use_until_its_capability_in_the_thread_goes() {
    let mut b = bell();
    let paddr = b.w.cap(b.table).paddr().0;
    assert_eq!(b.w.call(b.thread.slot, TCB_SET_SENDER_TABLE, &[], &[b.table]), (0, vec![]));
    assert_eq!(b.w.k.get(b.thread.tcb).user_interrupt.sender_table, paddr);
    assert_eq!(b.w.call(b.thread.slot, TCB_SET_SENDER_TABLE, &[], &[b.table]), (0, vec![]), "again");
    b.w.revoke(b.table);
    assert_eq!(b.w.k.get(b.thread.tcb).user_interrupt.sender_table, 0);
    assert_eq!(b.w.call(b.thread.slot, TCB_SET_SENDER_TABLE, &[], &[b.table]), (0, vec![]));
    assert_eq!(b.w.call(b.thread.slot, TCB_SET_SENDER_TABLE, &[], &[slot::NULL]), (0, vec![]));
    assert_eq!(b.w.k.get(b.thread.tcb).user_interrupt.sender_table, 0);
    // A table that goes away takes its entries out of the derivation tree.
    b.register(b.badged);
    b.w.delete(b.table);
    assert_eq!(b.w.k.receivers[usize::from(b.receiver())].entries, None);
}

#[test]
fn an_interrupt_posts_to_the_receiver_of_its_notification_and_to_no_other() {
    let mut b = bell();
    let quiet = b.w.make(ty::NOTIFICATION, 0);
    let handler = b.w.fresh();
    b.w.ok(slot::IRQ_CONTROL, IRQIssueIRQHandler, &[10, handler, 64], &[slot::CNODE]);
    b.w.ok(handler, IRQSetIRQHandler, &[], &[quiet]);
    b.w.effects();
    b.w.interrupt(Interrupt::Source(10));
    assert_eq!(b.w.effects(), [], "no receiver, nothing posted");
    b.w.ok(handler, IRQAckIRQ, &[], &[]);
    b.w.ok(handler, IRQSetIRQHandler, &[], &[b.badged]);
    b.w.effects();
    b.w.interrupt(Interrupt::Source(10));
    assert_eq!(b.w.effects(), [Effect::PostReceiver(b.receiver(), 1 << 5)]);
    // The word of the notification has it too, for a thread that blocks later.
    let receiver = usize::from(b.receiver());
    b.w.k.arch.posted[receiver] = 0;
    let (bell, thread) = (b.bell, b.thread);
    b.w.resume(thread);
    b.w.run_as(thread, |w| w.syscall(NB_RECV, bell, 0, &[], &[]));
    assert_eq!(b.w.register(thread, A0), 1 << 5);
}

#[test]
fn each_table_has_its_own_entries() {
    let mut b = bell();
    let other = b.w.thread(100);
    let second = b.w.make(SENDER_TABLE, 0);
    for (thread, table) in [(b.thread.slot, b.table), (other.slot, second)] {
        assert_eq!(b.w.call(thread, TCB_SET_SENDER_TABLE, &[], &[table]), (0, vec![]));
    }
    for index in 0..2 {
        for table in [b.table, second] {
            assert_eq!(b.w.call(table, SENDER_TABLE_REGISTER, &[], &[b.badged]), (0, vec![index]));
        }
    }
    assert_eq!(b.w.call(second, SENDER_TABLE_UNREGISTER, &[0], &[]), (0, vec![]));
    assert_eq!([0, 1].map(|index| b.entry(index).valid()), [true, true], "the other thread's table");
}
