//! System calls from a ring: invocations that a thread has written into a page, carried out one after the other.
//!
//! ```text
//!  program                       page of 64 lines                    kernel
//!  writes a line, QUEUED ─────▶ [QUEUED|cptr|info|arguments]
//!  RingEnter ───────────────────────────────────────────────────▶ copies the line, then checks what it copied,
//!                                                                  decodes and carries out as for a Call
//!  finds it DONE        ◀────── [DONE|info|words]            ◀──── answers in the same line; next line
//! ```
//!
//! So a request is one cache line, and there is nothing else that two sides share: no indices, no doze word. The line's place is its
//! name. The program's bound on what is under way is the number of lines.
//!
//! **Same checks.** An entry takes the way of its synchronous twin, `api::invocation::decode`, from the CSpace of the ring's owner. It
//! differs where a thread would be needed that waits in a system call: endpoint and reply capabilities are refused (IllegalOperation);
//! a capability address that leads nowhere is FailedLookup, since nobody is there to fault; and there is no IPC buffer, so a
//! message has as many words as the line, an answer four.
//!
//! **Nothing is unbounded.** Between entries the kernel looks whether an interrupt is pending, another core waits for the lock, or
//! a thread was woken; then it leaves, and RingEnter is executed again when the owner runs. A long invocation stops at the
//! preemption points that it always has; its line stays QUEUED, and is taken again from the beginning.
//!
//! **Who does it.** RingEnter, at its caller's priority, on its core; or, if the caller has other things to do and says so, an idle core
//! or one that does less urgent work (`handover.rs`). Whoever wants the results and has nothing else to do calls RingEnter
//! again and does the rest itself, as fast as anybody: nobody ever has to sleep over a ring.
//!
//! The ring is a frame in a slot of the TCB, like the IPC buffer. When that capability goes, there is no ring; what was queued
//! is not carried out, and an invocation that was preempted is left as by a thread that is suspended in it.

pub mod handover;
mod line;

use abi::syscall_ring::{DRAINED, HAND_OVER, HANDED_OVER, LINES, NO_RING, SKIPPED};

use self::line::{Arguments, Entry};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{self, Answer, Invocation, Origin};
use crate::api::syscall::interrupt;
use crate::arch::{Arch, register::A0};
use crate::cspace;
use crate::mem::{Ref, RingPage};
use crate::object::cap::{Kind, VmRights};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::sched;
use crate::state::{Action, Kernel};
use crate::thread;

/// What the kernel knows of a ring; part of the TCB. All zero: at the first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RingState {
    /// As in the TCB, of the entry that is next; 0: none.
    pub cancellation: u64,
    /// Number of the line that is next.
    position: u16,
    /// The entry before was linked to the next, and has failed.
    skips: bool,
    /// The core that works it off, plus 1; 0: none.
    helper: u8,
}

impl RingState {
    /// The core that works it off.
    pub fn helper(&self) -> Option<usize> {
        usize::from(self.helper).checked_sub(1)
    }
}

/// How a look at a ring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing is queued.
    Drained,
    /// There is no ring.
    NoRing,
    /// There may be more; something else comes first.
    Paused,
}

/// The ring of a thread, if it has one.
fn page(k: &Kernel, owner: Ref<Tcb>) -> Option<RingPage> {
    let cap = k.get(owner).cap(Slot::SyscallRing);
    let usable = cap.is(Kind::Frame) && !cap.is_device() && cap.vm_rights() == VmRights::ReadWrite;
    // SAFETY: the frame is RAM and its capability is in the TCB.
    usable.then(|| unsafe { RingPage::assume(cap.address()) })
}

/// RingEnter.
pub fn enter(k: &mut Kernel) {
    let owner = k.current();
    // Until it is through, the owner executes its system call again.
    thread::set_state(k, owner, ThreadState::Restart);
    let asks_for_help = k.get(owner).context.x[A0] & HAND_OVER != 0;
    let result = if asks_for_help && handover::offer(k, owner) {
        HANDED_OVER
    } else {
        match execute(k, owner) {
            Outcome::Drained => DRAINED,
            Outcome::NoRing => NO_RING,
            Outcome::Paused => return interrupt(k),
        }
    };
    // An entry may have suspended the owner.
    if k.get(owner).state == ThreadState::Restart {
        k.get_mut(owner).context.x[A0] = result;
        thread::set_state(k, owner, ThreadState::Running);
    }
}

/// Entries that have been answered, but whose lines are not handed back yet, because other cores may still use translations that they took
/// away: one bit for each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answered(u64);

const _: () = assert!(LINES == u64::BITS as usize);

impl Answered {
    fn contains(self, position: usize) -> bool {
        self.0 >> position & 1 != 0
    }

    /// Makes the other cores drop those translations, all at once, and hands the lines back.
    #[inline]
    fn settle(&mut self, k: &mut Kernel, page: RingPage) {
        k.arch.release_fences();
        while self.0 != 0 {
            line::hand_back(k, page, self.0.trailing_zeros() as usize);
            self.0 &= self.0 - 1;
        }
    }
}

/// Carries out what is queued, until something else comes first.
fn execute(k: &mut Kernel, owner: Ref<Tcb>) -> Outcome {
    let mut arguments = Arguments::default();
    let mut answered = Answered::default();
    loop {
        let Some(page) = page(k, owner) else {
            debug_assert!(answered == Answered::default(), "only what is settled can take a ring away");
            return Outcome::NoRing;
        };
        let position = usize::from(k.get(owner).ring.position) % LINES;
        if answered.contains(position) {
            // Once around: what stands there has been carried out.
            answered.settle(k, page);
        }
        let Some(entry) = Entry::take(k, page, position, &mut arguments) else {
            answered.settle(k, page);
            return Outcome::Drained;
        };
        let carried_out = step(k, owner, page, &entry, &mut answered);
        if !carried_out || pauses(k, owner) {
            answered.settle(k, page);
            return Outcome::Paused;
        }
    }
}

/// Whether something comes before the next entry of the ring of `owner`.
fn pauses(k: &Kernel, owner: Ref<Tcb>) -> bool {
    // A decision: somebody was woken, or the current thread or the owner cannot go on. Nothing of what the kernel holds on to for the
    // current thread may be reused before it has left.
    k.this().action != Action::Resume
        || k.get(owner).state == ThreadState::Inactive
        || k.arch.preempts()
        || k.arch.lock_is_wanted()
}

/// Carries out one entry. False: it was preempted, and is to be taken again.
///
/// Requests on frames, which map and unmap, hold back the fences on other cores: such a fence is an interrupt there and a wait here, many
/// times the rest of the request, and one serves for all. Nobody is told that a page is gone before it is, and nothing but such
/// requests happens in between: what else an entry asks for could use the memory again.
#[inline]
fn step(k: &mut Kernel, owner: Ref<Tcb>, page: RingPage, entry: &Entry, answered: &mut Answered) -> bool {
    let skips = k.get(owner).ring.skips;
    let outcome = if skips { Ok(Answer::Empty) } else { carry_out(k, owner, page, entry, answered) };
    if outcome == Err(Stop::Preempted) {
        return false;
    }
    // It may have deleted the frame, or the owner: then there is nobody to answer.
    if self::page(k, owner) != Some(page) {
        return true;
    }
    let succeeds = outcome.is_ok() && !skips;
    match outcome {
        _ if skips => entry.answer(k, page, SKIPPED, &[]),
        Ok(Answer::Empty) => entry.answer(k, page, 0, &[]),
        Ok(Answer::Words(words, length)) => entry.answer(k, page, 0, &words[..length.min(words.len())]),
        Err(Stop::Refused(refusal)) => {
            let (label, words, length) = refusal.reply();
            entry.answer(k, page, label, &words[..length]);
        }
        Err(Stop::Preempted) => {}
    }
    if k.arch.owes_fences() {
        answered.0 |= 1 << entry.position;
    } else {
        line::hand_back(k, page, entry.position);
    }
    let state = &mut k.get_mut(owner).ring;
    state.position = ((entry.position + entry.lines) % LINES) as u16;
    state.skips = entry.linked && !succeeds;
    true
}

/// What a Call of the owner would do, as far as no thread needs to wait.
#[inline]
fn carry_out(
    k: &mut Kernel,
    owner: Ref<Tcb>,
    page: RingPage,
    entry: &Entry,
    answered: &mut Answered,
) -> Result<Answer, Stop> {
    let look_up = |k: &Kernel, cptr, source| {
        cspace::lookup_slot(k, owner, cptr).map_err(|failure| Refusal::FailedLookup(source, failure))
    };
    let slot = look_up(k, entry.cptr, false)?;
    let mut extra = thread::ExtraCaps::default();
    for (place, &cptr) in extra.iter_mut().zip(entry.caps) {
        *place = Some(look_up(k, cptr, true)?);
    }
    let cap = k.cap(slot);
    let request = Invocation {
        caller: owner,
        slot,
        cap,
        label: entry.label,
        length: entry.words.len(),
        origin: Origin::Ring(entry.words),
        extra,
        call: true,
    };
    match cap.kind() {
        Kind::Frame => {
            k.arch.hold_fences();
            invocation::decode(k, &request)
        }
        Kind::Endpoint | Kind::Reply => Err(Refusal::IllegalOperation.into()),
        _ => {
            answered.settle(k, page);
            invocation::decode(k, &request)
        }
    }
}

/// The ring of a thread is set or taken away: it starts at the first line, and nobody works on it.
pub fn reset(k: &mut Kernel, owner: Ref<Tcb>) {
    handover::forget(k, owner);
    k.get_mut(owner).ring = RingState::default();
}

/// Whether `owner` would go before whatever this core does or could do.
fn comes_first(k: &Kernel, owner: Ref<Tcb>) -> bool {
    let (current, priority) = (k.current(), k.get(owner).priority);
    let idles = current == k.idle() || !k.get(current).is_runnable();
    (idles || k.get(current).priority < priority) && sched::nobody_better(k, priority)
}
