//! The program's side of a system-call ring, against a kernel that does what `abi::syscall_ring` says.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use abi::message::MessageInfo;
use abi::syscall_ring::*;
use futures::FutureExt;
use libipc::Executor;
use libipc::executor::Link;
use libipc::port::ThreadPort;
use libipc::syscall_ring::{Call, Entered, Kernel, Page, SyscallError, SyscallRing};
use proptest::prelude::*;

/// Label of an invocation that fails.
const FAILS: u64 = 99;
/// The doorbell's bit of the ring.
const BELL: u32 = 3;

/// A kernel that answers with the sum of the words and capabilities, and keeps what it was asked.
#[derive(Default)]
struct Model {
    position: Cell<usize>,
    skips: Cell<bool>,
    seen: RefCell<Vec<(u64, u64, Vec<u64>)>>,
    entries: Cell<usize>,
    /// Lines that another core took over.
    elsewhere: Cell<bool>,
    helps: Cell<bool>,
    gone: Cell<bool>,
}

#[derive(Clone)]
struct Handle(Rc<Model>, &'static Page);

impl Handle {
    fn new() -> Self {
        Self(Rc::default(), Box::leak(Box::new(Page::new())))
    }

    fn ring(&self, bell: Option<u32>) -> SyscallRing<Handle> {
        SyscallRing::new(self.1, self.clone(), bell)
    }

    fn work_off(&self) {
        let Handle(model, page) = self;
        loop {
            let line = model.position.get();
            let word = |line: usize, index: usize| page.word(line, index).load(Ordering::Acquire);
            let head = word(line, 0);
            if head & STATE_BITS != QUEUED {
                return;
            }
            let info = MessageInfo(word(line, INFO));
            let count = info.length() + info.extra_caps();
            let argument = |index: usize| match index.checked_sub(SHORT) {
                None => word(line, ARGUMENTS + index),
                Some(index) => word(line + 1, TAIL_ARGUMENTS + index),
            };
            let lines = if head & WIDE == 0 { 1 } else { 2 };
            assert_eq!(lines == 2, count > SHORT);
            let arguments: Vec<u64> = (0..count).map(argument).collect();
            let label = match info.label() {
                _ if model.skips.get() => SKIPPED,
                FAILS => 3,
                _ => 0,
            };
            let answer = [arguments.iter().sum::<u64>(), 0, 0, 0, 0];
            if label != SKIPPED {
                model.seen.borrow_mut().push((word(line, CPTR), info.label(), arguments));
            }
            let length = usize::from(label == 0);
            page.word(line, ANSWER_INFO).store(MessageInfo::new(label, 0, 0, length).0, Ordering::Relaxed);
            page.word(line, ANSWER).store(answer[0], Ordering::Relaxed);
            page.word(line, 0).store(DONE, Ordering::Release);
            model.skips.set(head & LINK != 0 && label != 0);
            model.position.set((line + lines) % LINES);
        }
    }
}

impl Kernel for Handle {
    fn enter(&self, may_hand_over: bool) -> Entered {
        self.0.entries.set(self.0.entries.get() + 1);
        if self.0.gone.get() {
            return Entered::NoRing;
        }
        if may_hand_over && self.0.helps.get() {
            self.0.elsewhere.set(true);
            return Entered::HandedOver;
        }
        self.work_off();
        Entered::Drained
    }
}

#[test]
fn a_round_of_many_tasks_is_one_entry_of_the_kernel() {
    let kernel = Handle::new();
    let ring = kernel.ring(None);
    let executor = Executor::new(40);
    executor.attach(&ring);
    for task in 0..40 {
        let ring = &ring;
        executor
            .spawn(async move {
                for round in 0..3 {
                    let answer = ring.call(task, 1, &[task, round], &[]).await;
                    assert_eq!(answer.map(|words| words[0]), Ok(task + round));
                }
            })
            .unwrap();
    }
    executor.run(&ThreadPort::new());
    assert_eq!(kernel.0.entries.get(), 3);
    assert_eq!(kernel.0.seen.borrow().len(), 120);
}

#[test]
fn a_full_ring_says_so_and_has_room_again() {
    let kernel = Handle::new();
    let ring = kernel.ring(None);
    let calls: Vec<_> = (0..LINES as u64).map(|word| ring.call(1, 1, &[word], &[])).collect();
    assert_eq!(ring.call(1, 1, &[], &[]).now_or_never(), Some(Err(SyscallError::Full)));
    assert_eq!(ring.room(1).now_or_never(), None);
    let executor = Executor::new(2);
    executor.attach(&ring);
    executor
        .spawn(async {
            ring.room(1).await;
            assert_eq!(ring.call(1, 1, &[7], &[]).await.map(|words| words[0]), Ok(7));
        })
        .unwrap();
    executor
        .spawn(async {
            for (call, word) in calls.into_iter().zip(0..) {
                assert_eq!(call.await.map(|words| words[0]), Ok(word));
            }
        })
        .unwrap();
    executor.run(&ThreadPort::new());
}

#[test]
fn refusals_and_links() {
    let kernel = Handle::new();
    let ring = kernel.ring(None);
    let fails = Call { target: 1, label: FAILS, words: &[], caps: &[] };
    let works = Call { target: 2, label: 1, words: &[1, 2, 3, 4, 5, 6], caps: &[7] };
    let [first, second] = ring.call_linked(fails, works);
    let [third, fourth] = ring.call_linked(works, works);
    ring.publish();
    assert_eq!(first.now_or_never(), Some(Err(SyscallError::Refused { label: 3, words: [0; 5] })));
    assert_eq!(second.now_or_never(), Some(Err(SyscallError::Skipped)));
    assert_eq!(third.now_or_never(), Some(Ok([28, 0, 0, 0, 0])));
    assert_eq!(fourth.now_or_never(), Some(Ok([28, 0, 0, 0, 0])));
}

#[test]
fn a_ring_that_is_gone_ends_every_call() {
    let kernel = Handle::new();
    let ring = kernel.ring(None);
    let call = ring.call(1, 1, &[], &[]);
    kernel.0.gone.set(true);
    ring.publish();
    assert_eq!(call.now_or_never(), Some(Err(SyscallError::Closed)));
    assert_eq!(ring.call(1, 1, &[], &[]).now_or_never(), Some(Err(SyscallError::Closed)));
    assert_eq!(ring.room(1).now_or_never(), Some(()));
}

#[test]
fn another_core_works_while_the_executor_sleeps_and_may_give_up() {
    for gives_up in [false, true] {
        let kernel = Handle::new();
        kernel.0.helps.set(true);
        let ring = kernel.ring(Some(BELL));
        ring.hand_over_from(4);
        let few = ring.call(1, 1, &[5], &[]);
        ring.publish();
        assert!(few.now_or_never().is_some(), "not worth it");
        let calls: Vec<_> = (0..4).map(|word| ring.call(1, 1, &[word], &[])).collect();
        ring.publish();
        assert!(kernel.0.elsewhere.get());
        assert!(!ring.poll(0) && !ring.is_ready(), "it may sleep");
        if gives_up {
            kernel.0.helps.set(false);
            assert!(!ring.poll(1 << BELL) && ring.is_ready(), "it must not");
            ring.publish();
        } else {
            kernel.work_off();
            assert!(ring.is_ready() && ring.poll(0));
        }
        for (call, word) in calls.into_iter().zip(0..) {
            assert_eq!(call.now_or_never().map(|answer| answer.map(|words| words[0])), Some(Ok(word)));
        }
        ring.poll(1 << BELL);
        assert!(!ring.is_ready());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Calls of any size, taken or dropped at any time: each ends once, with its own answer, in its own line.
    #[test]
    fn every_call_ends_once(steps in prop::collection::vec((0usize..6, 0usize..12, any::<prop::sample::Index>()), 1..300)) {
        let kernel = Handle::new();
        let ring = kernel.ring(None);
        let mut calls = Vec::new();
        let (mut made, mut ended, mut dropped) = (0u64, 0u64, 0u64);
        for (what, size, which) in steps {
            match what {
                0..=2 => {
                    let words: Vec<u64> = (0..size as u64).map(|word| word + made).collect();
                    let sum: u64 = words.iter().sum();
                    let mut call = ring.call(made, 1, &words, &[]);
                    match (&mut call).now_or_never() {
                        None => {
                            calls.push((call, sum));
                            made += 1;
                        }
                        Some(answer) => prop_assert_eq!(answer, Err(SyscallError::Full)),
                    }
                }
                3 => {
                    ring.publish();
                    ring.poll(0);
                }
                4 if !calls.is_empty() => {
                    let index = which.index(calls.len());
                    if let Some(answer) = (&mut calls[index].0).now_or_never() {
                        prop_assert_eq!(answer.map(|words| words[0]), Ok(calls[index].1));
                        drop(calls.swap_remove(index));
                        ended += 1;
                    }
                }
                5 if !calls.is_empty() => {
                    drop(calls.swap_remove(which.index(calls.len())));
                    dropped += 1;
                }
                _ => {}
            }
        }
        ring.publish();
        ring.poll(0);
        for (call, sum) in calls {
            prop_assert_eq!(call.now_or_never().map(|answer| answer.map(|words| words[0])), Some(Ok(sum)));
            ended += 1;
        }
        prop_assert_eq!(made, ended + dropped);
        let seen = kernel.0.seen.borrow();
        prop_assert!(seen.iter().map(|(target, ..)| *target).eq(0..made), "carried out in order, each once");
        // Nothing is held any more.
        let all: Vec<_> = (0..LINES).map(|_| ring.call(0, 1, &[], &[])).collect();
        prop_assert!(all.into_iter().all(|call| call.now_or_never().is_none()));
    }
}
