//! Random invocations on random capabilities: whatever is asked, the invariants hold; and in the end revoking the untyped brings
//! everything back.

use abi::bootinfo::slot;
use abi::extension::*;
use abi::label::Label::{self, *};
use abi::object as ty;
use proptest::prelude::*;
use proptest::sample::select;

use super::world::{UNTYPED, UNTYPED_BITS, World, with_receivers};
use crate::arch::Interrupt;
use crate::object::cap::Kind;

/// Slots that random invocations work on: `FIRST` to `FIRST + SLOTS`.
const FIRST: u64 = 2000;
const SLOTS: u64 = 24;
const ROOT: u64 = slot::CNODE;

/// An invocation; slots are counted from `FIRST`.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Retype {
        from: u64,
        kind: u64,
        size: u64,
        to: u64,
        count: u64,
    },
    /// Copy, Mint, Move, Mutate.
    Transfer {
        label: Label,
        to: u64,
        from: u64,
        rights: u64,
        data: u64,
    },
    Rotate {
        to: u64,
        pivot: u64,
        from: u64,
    },
    /// Into a CNode of radix 2, so that containers hold each other.
    MoveInto {
        node: u64,
        index: u64,
        from: u64,
    },
    Delete(u64),
    Revoke(u64),
    Cancel(u64),
    /// Any label with any arguments.
    Any {
        cptr: u64,
        label: u64,
        words: Vec<u64>,
        caps: Vec<u64>,
    },
    /// A tick is pending: long operations stop.
    Tick,
}

fn place() -> impl Strategy<Value = u64> {
    0..SLOTS
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let kinds = vec![
        (ty::UNTYPED, 12),
        (ty::UNTYPED, 14),
        (ty::TCB, 0),
        (ty::ENDPOINT, 0),
        (ty::NOTIFICATION, 0),
        (ty::CNODE, 2),
        (ty::PAGE_4K, 0),
        (ty::PAGE_TABLE, 0),
        (SENDER_TABLE, 0),
    ];
    let label = select(vec![CNodeCopy, CNodeMint, CNodeMove, CNodeMutate]);
    let word = prop_oneof![Just(0), 1u64..5, FIRST..FIRST + SLOTS, Just(64), any::<u64>()];
    let labels = prop_oneof![0u64..45, TCB_BIND_USER_INTERRUPT..=TCB_SET_SYSCALL_RING];
    prop_oneof![
        8 => (prop::bool::ANY, place(), select(kinds), place(), 1u64..4).prop_map(
            |(big, from, (kind, size), to, count)| Step::Retype {
                from: if big { UNTYPED } else { FIRST + from }, kind, size, to, count
            }
        ),
        8 => (label, place(), place(), 0u64..16, select(vec![0u64, 1, 2, 4, 60, 62]))
            .prop_map(|(label, to, from, rights, data)| Step::Transfer { label, to, from, rights, data }),
        1 => (place(), place(), place()).prop_map(|(to, pivot, from)| Step::Rotate { to, pivot, from }),
        4 => (place(), 0u64..4, place()).prop_map(|(node, index, from)| Step::MoveInto { node, index, from }),
        3 => place().prop_map(Step::Delete),
        1 => place().prop_map(Step::Revoke),
        1 => place().prop_map(Step::Cancel),
        6 => (place(), labels, prop::collection::vec(word, 0..9), prop::collection::vec(place(), 0..4))
            .prop_map(|(cptr, label, words, caps)| Step::Any { cptr, label, words, caps }),
        1 => Just(Step::Tick),
    ]
}

/// An invocation of seL4 by name, to its end.
fn finish_named(w: &mut World, cptr: u64, label: Label, words: &[u64], caps: &[u64]) {
    let number = label.number(w.k.config.labels).expect("exists");
    finish(w, cptr, number, words, caps);
}

/// Calls until the answer is there: a preempted call is made again.
fn finish(w: &mut World, cptr: u64, label: u64, words: &[u64], caps: &[u64]) {
    // Sending to an endpoint would block the only thread.
    if w.cap(cptr).is(Kind::Endpoint) {
        return;
    }
    let root = w.root;
    w.syscall(abi::syscall::CALL, cptr, label, words, caps);
    while w.runs(root) && w.k.get(root.tcb).context.next_pc == w.register(root, crate::arch::register::PC) {
        w.trap(abi::syscall::CALL);
    }
}

/// What a step asks for: the invoked capability, label, words, extra capabilities; `None` for a tick.
pub(super) fn request(w: &World, step: &Step) -> Option<(u64, u64, Vec<u64>, Vec<u64>)> {
    let at = |index: u64| FIRST + index;
    let named = |cptr: u64, label: Label, words: &[u64], caps: &[u64]| {
        let number = label.number(w.k.config.labels).expect("exists");
        Some((cptr, number, words.to_vec(), caps.to_vec()))
    };
    match step {
        &Step::Retype { from, kind, size, to, count } => {
            named(from, UntypedRetype, &[kind, size, 0, 0, at(to), count], &[ROOT])
        }
        &Step::Transfer { label, to, from, rights, data } => {
            let words = match label {
                CNodeMutate => [at(to), 64, at(from), 64, data, 0],
                _ => [at(to), 64, at(from), 64, rights, data],
            };
            named(ROOT, label, &words, &[ROOT])
        }
        &Step::Rotate { to, pivot, from } => {
            named(ROOT, CNodeRotate, &[at(to), 64, 0, at(pivot), 64, 0, at(from), 64], &[ROOT, ROOT])
        }
        &Step::MoveInto { node, index, from } => {
            let size = w.cap(at(node)).guard_size() as u64;
            named(at(node), CNodeMove, &[index, 2 + size, at(from), 64], &[ROOT])
        }
        &Step::Delete(place) => named(ROOT, CNodeDelete, &[at(place), 64], &[]),
        &Step::Revoke(place) => named(ROOT, CNodeRevoke, &[at(place), 64], &[]),
        &Step::Cancel(place) => named(ROOT, CNodeCancelBadgedSends, &[at(place), 64], &[]),
        Step::Any { cptr, label, words, caps } => {
            let caps = caps.iter().map(|&cap| at(cap)).collect();
            Some((at(*cptr), *label, words.clone(), caps))
        }
        Step::Tick => None,
    }
}

fn run(w: &mut World, step: &Step) {
    match request(w, step) {
        Some((cptr, label, words, caps)) => finish(w, cptr, label, &words, &caps),
        None => w.k.arch.pending.push_back(Interrupt::Timer),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold(steps in prop::collection::vec(step(), 1..120)) {
        let mut w = with_receivers(8);
        for step in &steps {
            run(&mut w, step);
            // Threads that were made and resumed have nothing to execute; they are worse than the root task.
            prop_assert!(w.runs(w.root), "{step:?}");
        }
        finish_named(&mut w, ROOT, CNodeRevoke, &[UNTYPED, 64], &[]);
        for index in FIRST..FIRST + SLOTS {
            prop_assert!(w.cap(index).is_null(), "slot {index} survived: {:?}", w.cap(index));
        }
        prop_assert!(w.k.receivers.iter().all(|receiver| receiver.notification.is_none()));
        prop_assert!(w.k.asid_pools[1..].iter().all(Option::is_none));
        w.k.arch.pending.clear();
        let table = w.make(ty::UNTYPED, UNTYPED_BITS as u64);
        prop_assert_eq!(w.cap(table).paddr(), w.cap(UNTYPED).paddr());
    }
}

/// A system call of whoever runs; slots are counted from `FIRST`.
#[derive(Clone, Debug)]
struct Any {
    number: isize,
    cptr: u64,
    label: u64,
    words: Vec<u64>,
    caps: Vec<u64>,
}

fn any_call() -> impl Strategy<Value = Any> {
    use abi::syscall::*;
    let number = select(vec![
        CALL, CALL, CALL, REPLY_RECV, SEND, NB_SEND, NB_SEND, RECV, REPLY, YIELD, NB_RECV, NB_RECV, RING_ENTER,
    ]);
    let word = prop_oneof![Just(0), 1u64..5, FIRST..FIRST + SLOTS, Just(64), any::<u64>()];
    let labels = prop_oneof![0u64..45, TCB_BIND_USER_INTERRUPT..=TCB_SET_SYSCALL_RING];
    (number, 0..10u64, labels, prop::collection::vec(word, 0..8), prop::collection::vec(place(), 0..3))
        .prop_map(|(number, cptr, label, words, caps)| Any { number, cptr, label, words, caps })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Four threads of one priority share endpoints, notifications and their own TCBs, and make any system call whatever.
    #[test]
    fn invariants_hold_between_threads(calls in prop::collection::vec(any_call(), 1..150)) {
        let mut w = with_receivers(8);
        let at = |index: u64| FIRST + index;
        for (index, kind) in [ty::ENDPOINT, ty::ENDPOINT, ty::NOTIFICATION, ty::NOTIFICATION, ty::CNODE].into_iter().enumerate() {
            finish_named(&mut w, UNTYPED, UntypedRetype, &[kind, 2, 0, 0, at(index as u64), 1], &[ROOT]);
        }
        for index in 5..8 {
            let thread = w.thread(255);
            finish_named(&mut w, ROOT, CNodeCopy, &[at(index), 64, thread.slot, 64, 15], &[ROOT]);
            w.resume(thread);
        }
        for call in &calls {
            // All of them wait: nothing can happen any more.
            if w.running().is_none() {
                break;
            }
            let many = if w.has_buffer() { 8 } else { 4 };
            let words = &call.words[..call.words.len().min(many)];
            let caps: Vec<u64> = call.caps.iter().map(|&cap| at(cap)).collect();
            let caps = if many > 4 { &caps[..] } else { &[] };
            w.syscall(call.number, at(call.cptr), call.label, words, caps);
        }
    }
}
