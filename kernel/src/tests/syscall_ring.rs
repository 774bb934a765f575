//! System calls from a ring: an entry does what its synchronous twin does, and a ring goes when its frame goes.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use abi::bootinfo::slot;
use abi::extension::*;
use abi::label::Label::{self, *};
use abi::message::{MAX_EXTRA_CAPS, MessageInfo};
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall_ring::*;
use proptest::prelude::*;
use sel4_conformance::row::MAX_WORDS;
use sel4_conformance::{Answer, Outcome, System, table};

use super::random_worlds;
use super::world::{DEVICE_UNTYPED, Thread, UNTYPED, UNTYPED_BITS, World, with_cores, with_receivers};
use crate::arch::Context;
use crate::arch::Interrupt;
use crate::arch::host::{ARENA, Effect};
use crate::arch::register::{A0, PC};
use crate::mem::{Paddr, RingPage};
use crate::object::cap::{Cap, Cte, FrameSize, Kind, VmRights};
use crate::object::mdb::Mdb;
use crate::object::tcb::{Slot, Tcb, ThreadState::*};
use crate::syscall_ring::RingState;

/// Slot 0: always empty.
const NOTHING: u64 = 0;

/// Numbers of an invocation.
struct Request<'a> {
    cptr: u64,
    label: u64,
    words: &'a [u64],
    caps: &'a [u64],
}

/// The ring of the root task, as its program sees it: where it writes next, and where it looks for answers.
struct Ring {
    frame: u64,
    next: usize,
}

impl Ring {
    /// A ring for the root task; another core signals `notification`.
    fn new(w: &mut World, notification: u64) -> Self {
        let frame = w.make(ty::PAGE_4K, 0);
        assert_eq!(w.call(slot::TCB, TCB_SET_SYSCALL_RING, &[], &[frame, notification]), (0, vec![]));
        Self { frame, next: 0 }
    }

    /// A ring in memory of its own, so that the untyped is whole.
    fn apart(w: &mut World) -> Self {
        let frame = w.fresh();
        let page = Paddr(ARENA.0 + (1 << UNTYPED_BITS) - 4096);
        assert!(page.0 < w.cap(UNTYPED).paddr().0);
        let cap = Cap::frame(page.kva(), FrameSize::Page, VmRights::ReadWrite, false);
        let slot = w.slot(frame);
        *w.k.get_mut(slot) = Cte { cap, mdb: Mdb::ALONE };
        assert_eq!(w.call(slot::TCB, TCB_SET_SYSCALL_RING, &[], &[frame, NOTHING]), (0, vec![]));
        Self { frame, next: 0 }
    }

    fn page(&self, w: &World) -> RingPage {
        // SAFETY: the test keeps the frame.
        unsafe { RingPage::assume(w.cap(self.frame).address()) }
    }

    /// Writes an entry, with `flags`; gives its line.
    fn queue(&mut self, w: &mut World, request: &Request<'_>, flags: u64) -> usize {
        let page = self.page(w);
        let info = MessageInfo::new(request.label, 0, request.caps.len(), request.words.len()).0;
        let line = self.next * LINE_WORDS;
        let arguments: Vec<u64> = request.words.iter().chain(request.caps).copied().collect();
        let wide = arguments.len() > SHORT;
        let tail = (self.next + 1) % LINES * LINE_WORDS;
        for (index, &word) in arguments.iter().enumerate().take(LONG) {
            let place = if index < SHORT { line + ARGUMENTS + index } else { tail + TAIL_ARGUMENTS + index - SHORT };
            set_word(w, page, place, word);
        }
        if wide {
            set_word(w, page, tail, TAIL);
        }
        set_word(w, page, line + CPTR, request.cptr);
        set_word(w, page, line + INFO, info);
        set_word(w, page, line, QUEUED | flags | if wide { WIDE } else { 0 });
        let written = self.next;
        self.next = (self.next + 1 + usize::from(wide)) % LINES;
        written
    }

    fn queue_named(&mut self, w: &mut World, cptr: u64, label: Label, words: &[u64], caps: &[u64]) -> usize {
        let label = label.number(w.k.config.labels).expect("exists in this numbering");
        self.queue(w, &Request { cptr, label, words, caps }, 0)
    }

    /// The answer in a line, once it is there.
    fn answer(&self, w: &World, line: usize) -> Option<(u64, Vec<u64>)> {
        let (page, first) = (self.page(w), line * LINE_WORDS);
        (word(w, page, first) == DONE).then(|| {
            let info = MessageInfo(word(w, page, first + ANSWER_INFO));
            let words = (0..info.length()).map(|index| word(w, page, first + ANSWER + index));
            (info.label(), words.collect())
        })
    }

    /// One entry, to its end.
    fn carry_out(&mut self, w: &mut World, request: &Request<'_>) -> (u64, Vec<u64>) {
        let line = self.queue(w, request, 0);
        enter_to_the_end(w);
        self.answer(w, line).expect("carried out")
    }
}

/// Word `index` of a ring's page.
fn word(w: &World, page: RingPage, index: usize) -> u64 {
    w.k.ring_line(page, index / LINE_WORDS)[index % LINE_WORDS].load(Ordering::Relaxed)
}

fn set_word(w: &World, page: RingPage, index: usize, value: u64) {
    w.k.ring_line(page, index / LINE_WORDS)[index % LINE_WORDS].store(value, Ordering::Relaxed);
}

/// RingEnter by whoever runs.
fn enter(w: &mut World, flags: u64) {
    let current = w.running().expect("somebody runs");
    w.k.get_mut(current).context.x[A0] = flags;
    w.trap(RING_ENTER);
}

/// RingEnter of the root task, executed again as long as the kernel wants; gives how often it was.
fn enter_to_the_end(w: &mut World) -> usize {
    let root = w.root;
    enter(w, 0);
    let mut again = 0;
    while w.runs(root) && w.k.get(root.tcb).context.next_pc == w.register(root, PC) {
        again += 1;
        w.trap(RING_ENTER);
    }
    again
}

/// The tables of refusals, asked through a ring.
struct Worlds {
    make: fn() -> World,
    world: World,
    ring: Ring,
    rows: usize,
    bad: Vec<String>,
}

impl System for Worlds {
    fn smp(&self) -> bool {
        self.world.k.config.labels == abi::label::Table::Smp
    }
    fn cores(&self) -> u64 {
        self.world.k.arch.cores as u64
    }
    fn call(&mut self, cptr: u64, label: u64, words: &[u64], caps: &[u64]) -> Answer {
        // Answers and arguments that need an IPC buffer.
        let reads = TCBReadRegisters.number(self.world.k.config.labels) == Some(label) && words.get(1) > Some(&4);
        let (error, got) = if words.len() + caps.len() > LONG || reads || self.world.cap_waits(cptr) {
            self.world.call(cptr, label, words, caps)
        } else {
            self.rows += 1;
            self.ring.carry_out(&mut self.world, &Request { cptr, label, words, caps })
        };
        let mut words = [0; MAX_WORDS];
        words[..got.len()].copy_from_slice(&got);
        Answer { error, words, length: got.len() }
    }
    fn block(&mut self) -> u64 {
        self.world = (self.make)();
        self.ring = Ring::apart(&mut self.world);
        UNTYPED
    }
    fn device(&self) -> u64 {
        DEVICE_UNTYPED
    }
    fn fresh(&mut self) -> u64 {
        self.world.fresh()
    }
    fn report(&mut self, outcome: &Outcome<'_>) {
        if !outcome.good() {
            self.bad.push(format!("{outcome:x?}"));
        }
    }
}

impl World {
    /// Whether what is asked of this capability needs a thread that waits.
    fn cap_waits(&self, cptr: u64) -> bool {
        cptr < 1 << 13 && matches!(self.cap(cptr).kind(), Kind::Endpoint | Kind::Reply)
    }
}

#[test]
fn every_entry_is_refused_as_its_synchronous_twin() {
    for make in [World::new as fn() -> World, || with_cores(3)] {
        let mut world = make();
        let ring = Ring::apart(&mut world);
        let mut worlds = Worlds { make, world, ring, rows: 0, bad: Vec::new() };
        table::all(&mut worlds);
        assert!(worlds.bad.is_empty(), "{:#?}", worlds.bad);
        assert!(worlds.rows > 600, "only {} rows went through the ring", worlds.rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same random invocations by trap and by ring: the same answers, and the same kernel in every word of memory.
    #[test]
    fn entries_do_what_their_synchronous_twins_do(steps in prop::collection::vec(random_worlds::step(), 1..80)) {
        let (mut trapping, mut queuing) = (with_receivers(8), with_receivers(8));
        let other = Ring::new(&mut trapping, NOTHING);
        let mut ring = Ring::new(&mut queuing, NOTHING);
        for (index, step) in steps.iter().enumerate() {
            let Some((cptr, label, words, caps)) = random_worlds::request(&trapping, step) else { continue };
            let caps = &caps[..caps.len().min(MAX_EXTRA_CAPS)];
            if trapping.cap_waits(cptr) || words.len() + caps.len() > LONG {
                continue;
            }
            let expected = trapping.call(cptr, label, &words, caps);
            let got = ring.carry_out(&mut queuing, &Request { cptr, label, words: &words, caps });
            prop_assert_eq!(expected, got, "step {} {:?}", index, step);
            let place = first_difference(&trapping, &queuing, &other);
            prop_assert!(place.is_none(), "step {} {:?}: memory differs at {:#x?}", index, step, place);
        }
    }
}

/// Where the memory of two worlds differs, but for what differs between a trap and a ring: registers and ring state of the root task,
/// its IPC buffer, the ring.
fn first_difference(one: &World, two: &World, ring: &Ring) -> Option<usize> {
    let offset = |cap: Cap| (cap.paddr().0 - ARENA.0) as usize;
    let tcb = offset(one.cap(one.root.slot));
    let mut own = [
        (tcb + offset_of!(Tcb, ring), size_of::<RingState>()),
        (tcb + offset_of!(Tcb, context), size_of::<Context>()),
        (offset(one.k.get(one.root.tcb).cap(Slot::Buffer)), 4096),
        (offset(one.cap(ring.frame)), 4096),
        (one.k.arch.memory().len(), 0),
    ];
    own.sort_unstable();
    let (one, two) = (one.k.arch.memory(), two.k.arch.memory());
    let mut start = 0;
    for (next, bytes) in own {
        if one[start..next] != two[start..next] {
            return (start..next).find(|&place| one[place] != two[place]);
        }
        start = next + bytes;
    }
    None
}

#[test]
fn setting_a_ring_checks_what_it_gets() {
    let mut w = World::new();
    let frame = w.make(ty::PAGE_4K, 0);
    let reads = w.copy(frame, Rights::READ);
    let device = w.make_from(DEVICE_UNTYPED, ty::PAGE_4K, 0);
    let bell = w.make(ty::NOTIFICATION, 0);
    let mute = w.copy(bell, Rights::READ);
    for (why, caps, expected) in [
        ("no notification", &[frame][..], (7, vec![])),
        ("not writable", &[reads, NOTHING], (2, vec![1])),
        ("device memory", &[device, NOTHING], (2, vec![1])),
        ("no frame", &[bell, NOTHING], (2, vec![1])),
        ("cannot be signalled", &[frame, mute], (2, vec![2])),
        ("no notification at all", &[frame, frame], (2, vec![2])),
        ("good", &[frame, bell], (0, vec![])),
        ("without notification", &[frame, NOTHING], (0, vec![])),
        ("none", &[NOTHING, NOTHING], (0, vec![])),
    ] {
        assert_eq!(w.call(slot::TCB, TCB_SET_SYSCALL_RING, &[], caps), expected, "{why}");
    }
    enter(&mut w, 0);
    assert_eq!(w.register(w.root, A0), NO_RING);
}

#[test]
fn a_batch_is_carried_out_in_order_around_the_ring() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let target = w.fresh();
    w.check = false;
    // Three lines an iteration: every alignment of a wide entry to the end of the ring.
    for _ in 0..LINES {
        let made =
            ring.queue_named(&mut w, UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, target, 1], &[slot::CNODE]);
        let gone = ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[target, 64], &[]);
        enter(&mut w, 0);
        assert_eq!(w.register(w.root, A0), DRAINED);
        assert_eq!(ring.answer(&w, made), Some((0, vec![])));
        assert_eq!(ring.answer(&w, gone), Some((0, vec![])));
    }
    w.check_step();
}

#[test]
fn translations_go_from_other_cores_once_for_all_pages_of_a_batch_and_before_anything_else() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let table = w.make(ty::PAGE_TABLE, 0);
    for table in [table, w.make(ty::PAGE_TABLE, 0)] {
        w.ok(table, RISCVPageTableMap, &[0x4000_0000, 0], &[slot::VSPACE]);
    }
    let frame = w.make(ty::PAGE_4K, 0);
    let pair = |w: &mut World, ring: &mut Ring| {
        ring.queue_named(w, frame, RISCVPageMap, &[0x4000_0000, 3, 1], &[slot::VSPACE]);
        ring.queue_named(w, frame, RISCVPageUnmap, &[], &[]);
    };
    // A full ring: each line once, though none is handed back before the last.
    (0..LINES / 2).for_each(|_| pair(&mut w, &mut ring));
    w.effects();
    enter(&mut w, 0);
    let effects = w.effects();
    let fences = effects.iter().filter(|effect| matches!(effect, Effect::FencePage(..))).count();
    assert_eq!((fences, effects.last()), (LINES, Some(&Effect::ReleaseFences)));
    assert_eq!(effects.len(), LINES + 1);
    assert!((0..LINES).all(|line| ring.answer(&w, line) == Some((0, vec![]))));

    pair(&mut w, &mut ring);
    let unmapped = ring.next - 1;
    let deleted = ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[frame, 64], &[]);
    pair(&mut w, &mut ring);
    enter(&mut w, 0);
    let (asid, address) = (1, 0x4000_0000);
    assert_eq!(
        w.effects(),
        [Effect::FencePage(asid, address), Effect::FencePage(asid, address), Effect::ReleaseFences],
        "the frame is deleted behind the fence, and there is none afterwards"
    );
    assert_eq!(ring.answer(&w, unmapped), Some((0, vec![])));
    assert_eq!(ring.answer(&w, deleted), Some((0, vec![])));
    assert_eq!(ring.answer(&w, deleted + 1), Some((2, vec![0])));
}

#[test]
fn what_would_need_a_waiting_thread_is_illegal_and_a_wrong_address_is_a_failed_lookup() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let endpoint = w.make(ty::ENDPOINT, 0);
    let answer = ring.carry_out(&mut w, &Request { cptr: endpoint, label: 0, words: &[], caps: &[] });
    assert_eq!(answer, (3, vec![]), "a message");
    let wrong = 1 << 40;
    let answer = ring.carry_out(&mut w, &Request { cptr: wrong, label: 0, words: &[], caps: &[] });
    assert_eq!(answer, (6, vec![0, 4, 64, 0, 51]), "as the cap fault of a Call, which nobody is there to take");
    let label = CNodeCopy.number(w.k.config.labels).expect("exists");
    let words = [100, 64, endpoint, 64, 15];
    let answer = ring.carry_out(&mut w, &Request { cptr: slot::CNODE, label, words: &words, caps: &[wrong] });
    assert_eq!(answer, (6, vec![1, 4, 64, 0, 51]), "an extra capability");
    let set = Request { cptr: slot::TCB, label: TCB_SET_SYSCALL_RING, words: &[], caps: &[NOTHING, NOTHING] };
    assert_eq!(ring.carry_out(&mut w, &set), (3, vec![]), "its own ring");
}

#[test]
fn a_linked_entry_runs_only_behind_success() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let bell = w.make(ty::NOTIFICATION, 0);
    let signal = |cptr| Request { cptr, label: 0, words: &[], caps: &[] };
    let lines: Vec<usize> = [(bell, LINK), (NOTHING, LINK), (bell, LINK), (bell, 0), (bell, 0)]
        .map(|(cptr, flags)| ring.queue(&mut w, &signal(cptr), flags))
        .into();
    enter(&mut w, 0);
    let answers: Vec<u64> = lines.iter().map(|&line| ring.answer(&w, line).expect("answered").0).collect();
    assert_eq!(answers, [0, 2, SKIPPED, SKIPPED, 0]);
}

#[test]
fn a_ring_goes_with_its_frame_and_what_is_queued_is_not_carried_out() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let page = ring.page(&w);
    let bell = w.make(ty::NOTIFICATION, 0);
    let revoke = ring.queue_named(&mut w, slot::CNODE, CNodeRevoke, &[ring.frame, 64], &[]);
    let late = ring.queue(&mut w, &Request { cptr: bell, label: 0, words: &[], caps: &[] }, 0);
    enter(&mut w, 0);
    assert_eq!(w.register(w.root, A0), NO_RING);
    assert!(w.k.get(w.root.tcb).cap(Slot::SyscallRing).is_null());
    for line in [revoke, late] {
        assert_eq!(word(&w, page, line * LINE_WORDS), QUEUED, "the frame is nobody's ring any more");
    }
}

#[test]
fn a_thread_may_suspend_or_delete_itself_by_its_ring() {
    let mut w = World::new();
    let frame = w.make(ty::PAGE_4K, 0);
    let victim = w.thread(200);
    assert_eq!(w.call(victim.slot, TCB_SET_SYSCALL_RING, &[], &[frame, NOTHING]), (0, vec![]));
    w.resume(victim);
    let mut ring = Ring { frame, next: 0 };
    let line = ring.queue_named(&mut w, victim.slot, TCBSuspend, &[], &[]);
    w.run_as(victim, |w| enter(w, 0));
    assert_eq!(w.state(victim), Inactive);
    assert_eq!(ring.answer(&w, line), Some((0, vec![])));
    w.resume(victim);
    ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[victim.slot, 64], &[]);
    let behind = ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[frame, 64], &[]);
    w.run_as(victim, |w| enter(w, 0));
    assert!(w.cap(victim.slot).is_null());
    assert_eq!(ring.answer(&w, behind), None);
    assert!(w.runs(w.root));
}

#[test]
fn a_batch_lets_interrupts_other_cores_and_better_threads_in() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let bell = w.make(ty::NOTIFICATION, 0);
    let signal = Request { cptr: bell, label: 0, words: &[], caps: &[] };
    for _ in 0..3 {
        ring.queue(&mut w, &signal, 0);
    }
    w.k.arch.pending.push_back(Interrupt::Timer);
    assert_eq!(enter_to_the_end(&mut w), 1, "the tick came behind the first entry");
    for _ in 0..3 {
        ring.queue(&mut w, &signal, 0);
    }
    w.k.arch.lock_is_wanted = true;
    assert_eq!(enter_to_the_end(&mut w), 3);
    w.k.arch.lock_is_wanted = false;

    let ready = w.make(ty::NOTIFICATION, 0);
    let better = w.receiver(200, ready);
    w.ok(slot::TCB, TCBSetPriority, &[100], &[slot::TCB]);
    ring.queue(&mut w, &Request { cptr: ready, ..signal }, 0);
    let last = ring.queue(&mut w, &signal, 0);
    enter(&mut w, 0);
    assert!(w.runs(better), "woken by the first entry, before the second");
    assert_eq!(ring.answer(&w, last), None);
    w.syscall(abi::syscall::RECV, ready, 0, &[], &[]);
    assert!(w.runs(w.root));
    w.trap(RING_ENTER);
    assert_eq!(ring.answer(&w, last), Some((0, vec![])));
}

/// Senders that wait: more than the units of work between two looks at pending interrupts.
const MANY: usize = if cfg!(miri) { 130 } else { 250 };

#[test]
fn a_long_invocation_goes_on_where_it_stopped() {
    let mut w = World::new();
    let mut ring = Ring::new(&mut w, NOTHING);
    let endpoint = w.make(ty::ENDPOINT, 0);
    let badged = [w.mint(endpoint, Rights::ALL, 1), w.mint(endpoint, Rights::ALL, 2)];
    w.check = false;
    let threads: Vec<Thread> = (0..MANY)
        .map(|index| {
            let thread = w.thread(10);
            w.resume(thread);
            w.run_as(thread, |w| w.syscall(abi::syscall::SEND, badged[index % 2], 0, &[], &[]));
            thread
        })
        .collect();
    w.check = true;
    let line = ring.queue_named(&mut w, slot::CNODE, CNodeCancelBadgedSends, &[badged[0], 64], &[]);
    w.k.work_units = 0;
    w.k.arch.pending.push_back(Interrupt::Timer);
    enter(&mut w, 0);
    assert_eq!(ring.answer(&w, line), None, "preempted");
    // The thread's own cancellation in between is another one.
    w.ok(slot::CNODE, CNodeCancelBadgedSends, &[badged[1], 64], &[]);
    enter_to_the_end(&mut w);
    assert_eq!(ring.answer(&w, line), Some((0, vec![])));
    assert!(threads.iter().all(|&thread| w.state(thread) == Restart));
}

/// Executes the kernel on `core` because of a software interrupt.
fn software_interrupt(w: &mut World, core: usize) {
    let before = w.k.core();
    w.k.arch.core = core;
    w.k.arch.pending.push_back(Interrupt::Software);
    let _ = crate::api::syscall::handle_interrupt(&mut w.k);
    w.k.arch.core = before;
    w.check_step();
}

/// A root task on core 0 with a ring, whose notification is bound to it.
fn with_helpers(cores: usize) -> (World, Ring, u64) {
    let mut w = with_cores(cores);
    let bell = w.make(ty::NOTIFICATION, 0);
    w.ok(slot::TCB, TCBBindNotification, &[], &[bell]);
    let badged = w.mint(bell, Rights::WRITE, 1 << 20);
    let ring = Ring::new(&mut w, badged);
    (w, ring, bell)
}

#[test]
fn an_idle_core_works_off_a_ring_and_signals() {
    let (mut w, mut ring, bell) = with_helpers(2);
    enter(&mut w, HAND_OVER);
    assert_eq!(w.register(w.root, A0), DRAINED, "nothing to hand over");
    let thread = w.thread(10);
    let target = w.fresh();
    let lines = [
        ring.queue_named(&mut w, UNTYPED, UntypedRetype, &[ty::TCB, 0, 0, 0, target, 1], &[slot::CNODE]),
        ring.queue_named(&mut w, thread.slot, TCBResume, &[], &[]),
    ];
    enter(&mut w, HAND_OVER);
    assert_eq!(w.register(w.root, A0), HANDED_OVER);
    enter(&mut w, HAND_OVER);
    assert_eq!(w.register(w.root, A0), HANDED_OVER, "once is enough");
    assert_eq!(ring.answer(&w, lines[0]), None);
    w.syscall(abi::syscall::RECV, bell, 0, &[], &[]);
    assert_eq!(w.state(w.root), BlockedOnNotification);
    software_interrupt(&mut w, 1);
    for line in lines {
        assert_eq!(ring.answer(&w, line), Some((0, vec![])));
    }
    assert_eq!(w.k.get(w.object::<Tcb>(target)).core, 0, "the core of who asked");
    assert_eq!(w.state(w.root), Running);
    assert_eq!(w.register(w.root, A0), 1 << 20);
}

#[test]
fn who_has_nothing_else_to_do_takes_over_what_is_left() {
    let (mut w, mut ring, bell) = with_helpers(2);
    let line = ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[4000, 64], &[]);
    enter(&mut w, HAND_OVER);
    enter(&mut w, 0);
    assert_eq!(w.register(w.root, A0), DRAINED);
    assert_eq!(ring.answer(&w, line), Some((0, vec![])));
    software_interrupt(&mut w, 1);
    w.syscall(abi::syscall::NB_RECV, bell, 0, &[], &[]);
    assert_eq!(w.register(w.root, A0), 1 << 20, "the signal that was promised");
}

#[test]
fn a_core_with_better_work_gives_a_ring_back() {
    let (mut w, mut ring, bell) = with_helpers(2);
    w.ok(slot::TCB, TCBSetPriority, &[100], &[slot::TCB]);
    let worse = w.thread(50);
    w.ok(worse.slot, TCBSetAffinity, &[1], &[]);
    w.resume(worse);
    software_interrupt(&mut w, 1);
    assert_eq!(w.k.cores[1].current, Some(worse.tcb));
    let delete = |w: &mut World, ring: &mut Ring| {
        ring.queue_named(w, slot::CNODE, CNodeDelete, &[4000, 64], &[]);
        enter(w, HAND_OVER);
        w.register(w.root, A0)
    };
    assert_eq!(delete(&mut w, &mut ring), HANDED_OVER, "to a core that does less urgent work");
    let better = w.thread(150);
    w.ok(better.slot, TCBSetAffinity, &[1], &[]);
    w.resume(better);
    software_interrupt(&mut w, 1);
    assert_eq!(w.k.cores[1].current, Some(better.tcb));
    assert_eq!(ring.answer(&w, 0), None);
    w.syscall(abi::syscall::NB_RECV, bell, 0, &[], &[]);
    assert_eq!(w.register(w.root, A0), 1 << 20, "look, nobody works on it");
    assert_eq!(delete(&mut w, &mut ring), DRAINED, "nobody is free");
    assert_eq!(ring.answer(&w, 0), Some((0, vec![])));
}

#[test]
fn a_core_stops_working_for_a_thread_that_is_deleted_or_stopped() {
    for delete in [false, true] {
        let mut w = with_cores(2);
        let bell = w.make(ty::NOTIFICATION, 0);
        let frame = w.make(ty::PAGE_4K, 0);
        let owner = w.thread(100);
        assert_eq!(w.call(owner.slot, TCB_SET_SYSCALL_RING, &[], &[frame, bell]), (0, vec![]));
        let mut ring = Ring { frame, next: 0 };
        let line = ring.queue_named(&mut w, slot::CNODE, CNodeDelete, &[4000, 64], &[]);
        w.resume(owner);
        w.run_as(owner, |w| enter(w, HAND_OVER));
        assert_eq!(w.k.cores[1].ring, Some(owner.tcb));
        if delete {
            w.delete(owner.slot);
            assert_eq!(w.k.cores[1].ring, None);
        } else {
            w.ok(owner.slot, TCBSuspend, &[], &[]);
        }
        software_interrupt(&mut w, 1);
        assert_eq!(ring.answer(&w, line), None);
        assert_eq!(w.k.cores[1].ring, None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 32 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// A program that writes anything into its ring harms nobody: every invariant holds, and what it asked for is refused or its own.
    #[test]
    fn a_ring_full_of_anything_breaks_nothing(
        pages in prop::collection::vec(prop::collection::vec(
            (0..LINES * LINE_WORDS, prop_oneof![Just(QUEUED), Just(QUEUED | WIDE), Just(QUEUED | LINK), 0u64..70, any::<u64>()]), 1..100), 1..6),
        label in 0u64..45,
    ) {
        let mut w = with_receivers(8);
        let ring = Ring::new(&mut w, NOTHING);
        // Holds on to the CSpace when the root task deletes itself.
        w.thread(10);
        let page = ring.page(&w);
        for (line, words) in (0..LINES).zip([[1u64, 2, 3], [2, 1, 9], [UNTYPED, 3, 2]].into_iter().cycle()) {
            let info = MessageInfo::new(label + line as u64 % 4, 0, words[1] as usize, words[2] as usize).0;
            for (index, word) in [QUEUED, words[0], info, 66, 64, 2, 64, 15].into_iter().enumerate() {
                set_word(&w, page, line * LINE_WORDS + index, word);
            }
        }
        w.check = false;
        for writes in pages {
            for (index, word) in writes {
                set_word(&w, page, index, word);
            }
            if w.running() != Some(w.root.tcb) {
                break;
            }
            enter(&mut w, 0);
            if w.k.threads.is_none() {
                break;
            }
            w.check_step();
        }
    }
}
