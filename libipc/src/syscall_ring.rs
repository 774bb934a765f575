//! System calls as coroutines make them: written into a ring, carried out by the kernel in batches (`abi::syscall_ring`).
//!
//! ```text
//!  task:   ring.invoke(request) ── line QUEUED            .await ─> pending            wakes, takes the answer ─> line FREE
//!  round:                        publish: RingEnter, once for all that the tasks of the round queued
//!  kernel:                         lines carried out, DONE           poll of the next round: wakes who waits
//! ```
//!
//! The ring is a [`Link`] of its executor, so a batch is what one round of tasks asked for, and costs one entry of the kernel.
//! RingEnter comes back when the lines are done; so nothing has to sleep over them. Where that is wanted ([`SyscallRing::hand_over_from`])
//! it may instead find a hart that idles, and signals the doorbell when that is through; then this thread goes on, and
//! sleeps if it has nothing else to do.
//!
//! A line belongs to its call until the answer is taken, and lines are used in turn. A dropped call is carried out all the
//! same, if the kernel gets to it; its answer reaches nobody. Each call ends exactly once.

use core::cell::Cell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};

use abi::message::MessageInfo;
use abi::syscall_ring as layout;
pub use abi::syscall_ring::LINES;
use abi::syscall_ring::{LINE_WORDS, LONG, SHORT};
use futures_core::FusedFuture;

use crate::bell::Doze;
use crate::executor::{Link, Wait};
use crate::waiter::{Waiter, Waiting};

/// The ring as memory: a page, zeroed when it became the ring of the thread.
#[repr(C, align(4096))]
pub struct Page([[AtomicU64; LINE_WORDS]; LINES]);

impl Page {
    /// Nothing queued.
    pub const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; LINE_WORDS] }; LINES])
    }

    /// A word.
    pub fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        &self.0[line % LINES][word % LINE_WORDS]
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::new()
    }
}

/// What came of RingEnter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// Nothing is queued any more.
    Drained,
    /// Another hart carries it out, and rings the doorbell then.
    HandedOver,
    /// The thread has no ring.
    NoRing,
}

/// Who carries the lines out.
pub trait Kernel {
    /// Carries out what is queued, or with `may_hand_over` lets another hart do it.
    fn enter(&self, may_hand_over: bool) -> Entered;
}

/// Why a call has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyscallError {
    /// The kernel refuses it: label and words of its answer (`abi::error`).
    Refused {
        /// Label.
        label: u64,
        /// Words; those that were not sent are 0.
        words: [u64; layout::ANSWER_WORDS],
    },
    /// Not carried out: the call that it was linked to failed.
    Skipped,
    /// No line is free; nothing was queued.
    Full,
    /// The thread has no ring any more. Whether it was carried out is not known.
    Closed,
}

impl fmt::Display for SyscallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { label, words } => write!(f, "the kernel refuses it: error {label} {words:x?}"),
            Self::Skipped => f.write_str("not carried out, because the call before failed"),
            Self::Full => f.write_str("no line of the ring is free"),
            Self::Closed => f.write_str("the thread has no ring"),
        }
    }
}

impl core::error::Error for SyscallError {}

#[cfg(target_os = "none")]
impl SyscallError {
    /// The kernel's refusal as a synchronous call reports it.
    pub fn refusal(&self) -> Option<userlib::cap::Error> {
        match *self {
            Self::Refused { label, words: [a, b, c, d, _] } => userlib::cap::Error::check(label, [a, b, c, d]).err(),
            _ => None,
        }
    }
}

/// An invocation, for [`SyscallRing::call_linked`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Address of the invoked capability.
    pub target: u64,
    /// Label.
    pub label: u64,
    /// Message words.
    pub words: &'a [u64],
    /// Addresses of extra capabilities.
    pub caps: &'a [u64],
}

/// Words of an answer; those that were not sent are 0.
pub type Answer = [u64; layout::ANSWER_WORDS];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nobody's.
    Free,
    /// Of a call, in the kernel's hands; `lines` 1 or 2.
    Queued { lines: u8 },
    /// As Queued; nobody waits for it.
    Abandoned { lines: u8 },
    /// The answer is in the line, and nobody has taken it.
    Done { lines: u8 },
    /// Of the call in the line before.
    Tail,
}

struct Place {
    state: Cell<State>,
    waiter: Waiter,
}

/// The ring of a thread. Attach it to the executor whose tasks use it.
pub struct SyscallRing<K: Kernel> {
    page: &'static Page,
    kernel: K,
    /// The doorbell's bit that the kernel rings; 0: nothing is handed over.
    bell: u64,
    places: [Place; LINES],
    /// The line that is written next.
    next: Cell<usize>,
    /// The first that the kernel was not seen to be done with, and how many there are from it on.
    oldest: Cell<usize>,
    in_kernel: Cell<usize>,
    /// Lines written since the kernel was entered last.
    fresh: Cell<usize>,
    /// From so many lines of a round on, another hart is looked for.
    hand_over_from: Cell<usize>,
    handed_over: Cell<bool>,
    closed: Cell<bool>,
    for_room: Waiting,
}

impl<K: Kernel> SyscallRing<K> {
    /// The ring in `page`, which is at its first line. `bell`: the bit of the executor's doorbell that tells that another hart is through,
    /// if one may work on the ring.
    pub fn new(page: &'static Page, kernel: K, bell: Option<u32>) -> Self {
        Self {
            page,
            kernel,
            bell: bell.map_or(0, |bit| 1 << bit),
            places: core::array::from_fn(|_| Place { state: Cell::new(State::Free), waiter: Waiter::new() }),
            next: Cell::new(0),
            oldest: Cell::new(0),
            in_kernel: Cell::new(0),
            fresh: Cell::new(0),
            hand_over_from: Cell::new(usize::MAX),
            handed_over: Cell::new(false),
            closed: Cell::new(false),
            for_room: Waiting::new(),
        }
    }

    /// From now on lets another hart do the work, if one idles or does something less urgent, when a round queued `lines` lines or more.
    /// At first none does: for invocations that take a few hundred cycles the way of their cache lines there and back costs more than
    /// this thread gains. It is meant for long ones (revoking, clearing memory), in programs that must answer others meanwhile.
    pub fn hand_over_from(&self, lines: usize) {
        self.hand_over_from.set(lines);
    }

    /// Queues an invocation of `target`: message words, addresses of extra capabilities. It is queued at once, not at the first poll.
    ///
    /// # Errors
    /// The future resolves to [`SyscallError`], at once if no line is free or the ring is closed.
    ///
    /// # Panics
    /// If words and capabilities together are more than [`LONG`].
    #[inline(always)] // as `queue`
    pub fn call(&self, target: u64, label: u64, words: &[u64], caps: &[u64]) -> SyscallCall<'_, K> {
        match self.has_room(lines_of(words.len() + caps.len())) {
            true => self.queue(target, label, words, caps, false),
            false => self.refused(),
        }
    }

    /// Queues two invocations, the second of which is carried out only if the first succeeds. Both or none are queued.
    ///
    /// # Errors
    /// # Panics
    /// As [`SyscallRing::call`].
    pub fn call_linked(&self, first: Call<'_>, second: Call<'_>) -> [SyscallCall<'_, K>; 2] {
        let lines = |call: Call<'_>| lines_of(call.words.len() + call.caps.len());
        if !self.has_room(lines(first) + lines(second)) {
            return [self.refused(), self.refused()];
        }
        [(first, true), (second, false)]
            .map(|(call, linked)| self.queue(call.target, call.label, call.words, call.caps, linked))
    }

    /// Resolves when the next `lines` lines are free, or the ring is closed. A call takes one, or two if its words and capabilities are
    /// more than [`SHORT`].
    pub async fn room(&self, lines: usize) {
        poll_fn(|context| {
            if self.closed.get() || self.has_room(lines) {
                return Poll::Ready(());
            }
            self.for_room.add(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Whether the thread has lost its ring.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Whether the next `lines` lines are nobody's.
    #[inline] // one or two loads
    fn has_room(&self, lines: usize) -> bool {
        let is_free = |ahead: usize| self.places[(self.next.get() + ahead) % LINES].state.get() == State::Free;
        !self.closed.get() && (0..lines).all(is_free)
    }

    #[cold]
    fn refused(&self) -> SyscallCall<'_, K> {
        let progress = if self.closed.get() { Progress::Closed } else { Progress::Full };
        SyscallCall { ring: self, progress }
    }

    #[inline(always)] // hot path: the arguments go from where they are made into the line
    fn queue(&self, target: u64, label: u64, words: &[u64], caps: &[u64], linked: bool) -> SyscallCall<'_, K> {
        let count = words.len() + caps.len();
        assert!(count <= LONG, "more than two lines");
        let (line, lines) = (self.next.get(), lines_of(count));
        let put = |index: usize, word: u64| {
            let place = match index.checked_sub(SHORT) {
                None => self.page.word(line, layout::ARGUMENTS + index),
                Some(index) => self.page.word(line + 1, layout::TAIL_ARGUMENTS + index),
            };
            place.store(word, Ordering::Relaxed);
        };
        words.iter().enumerate().for_each(|(index, &word)| put(index, word));
        caps.iter().enumerate().for_each(|(index, &cap)| put(words.len() + index, cap));
        self.page.word(line, layout::CPTR).store(target, Ordering::Relaxed);
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        self.page.word(line, layout::INFO).store(info.0, Ordering::Relaxed);
        let mut head = layout::QUEUED | if linked { layout::LINK } else { 0 };
        if lines == 2 {
            head |= layout::WIDE;
            self.page.word(line + 1, 0).store(layout::TAIL, Ordering::Relaxed);
            self.places[(line + 1) % LINES].state.set(State::Tail);
        }
        // Release: partner is the kernel's acquire load of the state, on whatever hart.
        self.page.word(line, 0).store(head, Ordering::Release);
        self.places[line % LINES].state.set(State::Queued { lines: lines as u8 });
        self.next.set((line + lines) % LINES);
        self.in_kernel.set(self.in_kernel.get() + lines);
        self.fresh.set(self.fresh.get() + lines);
        SyscallCall { ring: self, progress: Progress::Waiting(line) }
    }

    /// Lines of a call are nobody's again.
    #[inline] // hot path: a store, and a look who waits
    fn release(&self, line: usize, lines: u8) {
        self.places[line % LINES].state.set(State::Free);
        if lines == 2 {
            self.places[(line + 1) % LINES].state.set(State::Free);
        }
        if self.for_room.any() {
            self.for_room.wake_one();
        }
    }

    /// Takes in what the kernel is done with; gives whether there was something.
    #[inline]
    fn drain(&self) -> bool {
        let mut any = false;
        while self.is_done() {
            let line = self.oldest.get();
            let place = &self.places[line % LINES];
            let lines = match place.state.get() {
                State::Queued { lines } => {
                    place.state.set(State::Done { lines });
                    place.waiter.wake();
                    lines
                }
                State::Abandoned { lines } => {
                    self.release(line, lines);
                    lines
                }
                // Only lines in the kernel's hands are counted by `in_kernel`.
                State::Free | State::Done { .. } | State::Tail => unreachable!("line {line} is not the kernel's"),
            };
            self.oldest.set((line + usize::from(lines)) % LINES);
            self.in_kernel.set(self.in_kernel.get() - usize::from(lines));
            any = true;
        }
        any
    }

    /// Whether the kernel is done with the oldest line that it has.
    #[inline]
    fn is_done(&self) -> bool {
        // Acquire: partner is the kernel's release store of the state, behind the answer.
        let state = || self.page.word(self.oldest.get(), 0).load(Ordering::Acquire);
        self.in_kernel.get() > 0 && state() & layout::STATE_BITS == layout::DONE
    }

    /// There is no ring any more: every call ends.
    #[cold]
    fn close(&self) {
        self.closed.set(true);
        self.drain();
        self.places.iter().for_each(|place| place.waiter.wake());
        while self.for_room.any() {
            self.for_room.wake_one();
        }
    }

    /// The answer in a line that is done.
    #[inline(always)] // hot path: most answers are one comparison
    fn answer(&self, line: usize) -> Result<Answer, SyscallError> {
        let info = MessageInfo(self.page.word(line, layout::ANSWER_INFO).load(Ordering::Relaxed));
        if info == MessageInfo(0) { Ok([0; layout::ANSWER_WORDS]) } else { self.words(line, info) }
    }

    /// An answer with words, or a refusal.
    #[cold]
    fn words(&self, line: usize, info: MessageInfo) -> Result<Answer, SyscallError> {
        let word = |index| self.page.word(line, index).load(Ordering::Relaxed);
        let length = info.length().min(layout::ANSWER_WORDS);
        let mut words = [0; layout::ANSWER_WORDS];
        (0..length).for_each(|index| words[index] = word(layout::ANSWER + index));
        match info.label() {
            0 => Ok(words),
            layout::SKIPPED => Err(SyscallError::Skipped),
            label => Err(SyscallError::Refused { label, words }),
        }
    }
}

#[inline]
const fn lines_of(arguments: usize) -> usize {
    if arguments > SHORT { 2 } else { 1 }
}

impl<K: Kernel> Link for SyscallRing<K> {
    #[inline] // once per round: a load, and a look at the oldest line
    fn poll(&self, bits: u64) -> bool {
        let any = self.drain();
        if bits & self.bell != 0 && self.handed_over.replace(false) {
            // Who worked on the ring does not any more. What it left is for the next RingEnter.
            self.fresh.set(self.in_kernel.get());
        }
        any
    }

    #[inline] // as `poll`
    fn publish(&self) {
        let fresh = self.fresh.replace(0);
        if fresh == 0 {
            return;
        }
        match self.kernel.enter(self.bell != 0 && fresh >= self.hand_over_from.get()) {
            Entered::Drained => {
                self.handed_over.set(false);
                self.drain();
            }
            Entered::HandedOver => self.handed_over.set(true),
            Entered::NoRing => self.close(),
        }
    }

    fn doze(&self, _: Doze) {}

    #[inline] // in the idle loop
    fn is_ready(&self) -> bool {
        self.is_done() || self.fresh.get() > 0
    }

    fn waits(&self, visit: &mut dyn FnMut(Wait, &Waker)) {
        for (line, place) in self.places.iter().enumerate() {
            if matches!(place.state.get(), State::Queued { .. }) {
                place.waiter.show(&mut |waker| visit(Wait::Kernel { line }, waker));
            }
        }
        self.for_room.show(&mut |waker| visit(Wait::Credit, waker));
    }
}

enum Progress {
    Waiting(usize),
    /// Was not queued.
    Full,
    /// As Full: there is no ring.
    Closed,
    Ended,
}

/// A system call under way. Dropping it gives its answer up, not the call.
#[must_use = "the call is under way, but without awaiting it nobody gets the answer"]
pub struct SyscallCall<'r, K: Kernel> {
    ring: &'r SyscallRing<K>,
    progress: Progress,
}

impl<K: Kernel> Future for SyscallCall<'_, K> {
    type Output = Result<Answer, SyscallError>;

    /// # Panics
    /// If polled again after it resolved.
    #[inline(always)] // hot path: joins the caller's own poll, and the answer is read where it is needed
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let line = match core::mem::replace(&mut self.progress, Progress::Ended) {
            Progress::Waiting(line) => line,
            Progress::Full => return Poll::Ready(Err(SyscallError::Full)),
            Progress::Closed => return Poll::Ready(Err(SyscallError::Closed)),
            Progress::Ended => panic!("system call polled after it resolved"),
        };
        let place = &self.ring.places[line % LINES];
        let result = match place.state.get() {
            State::Done { lines } => {
                let answer = self.ring.answer(line);
                self.ring.release(line, lines);
                answer
            }
            // The line stays the kernel's: it may still write there.
            _ if self.ring.closed.get() => Err(SyscallError::Closed),
            _ => {
                place.waiter.register(context.waker());
                self.progress = Progress::Waiting(line);
                return Poll::Pending;
            }
        };
        Poll::Ready(result)
    }
}

impl<K: Kernel> FusedFuture for SyscallCall<'_, K> {
    fn is_terminated(&self) -> bool {
        matches!(self.progress, Progress::Ended)
    }
}

impl<K: Kernel> Drop for SyscallCall<'_, K> {
    #[inline] // hot path: a compare when the call has resolved
    fn drop(&mut self) {
        if let Progress::Waiting(line) = self.progress {
            let state = &self.ring.places[line].state;
            match state.get() {
                State::Queued { lines } => state.set(State::Abandoned { lines }),
                State::Done { lines } => self.ring.release(line, lines),
                State::Free | State::Abandoned { .. } | State::Tail => {}
            }
        }
    }
}

/// The kernel below this program.
#[cfg(target_os = "none")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Trap;

#[cfg(target_os = "none")]
impl Kernel for Trap {
    #[inline] // a system call
    fn enter(&self, may_hand_over: bool) -> Entered {
        match userlib::syscall::ring_enter(if may_hand_over { layout::HAND_OVER } else { 0 }) {
            layout::DRAINED => Entered::Drained,
            layout::HANDED_OVER => Entered::HandedOver,
            _ => Entered::NoRing,
        }
    }
}

#[cfg(target_os = "none")]
impl SyscallRing<Trap> {
    /// The ring that the manifest gives thread 0 (`syscall-ring = true`); once.
    pub fn from_env(env: &userlib::Env) -> Option<Self> {
        let given = env.syscall_ring()?;
        let page = core::ptr::with_exposed_provenance::<Page>(given.region.address);
        // SAFETY: the root task maps the page zeroed, readable and writable, for as long as the program lives; it is 4 KiB aligned, and
        // everybody reaches it through atomics.
        Some(Self::new(unsafe { &*page }, Trap, Some(given.bit)))
    }

    /// As [`SyscallRing::call`], of an invocation as `userlib` makes it.
    #[inline(always)] // the arguments go from where they are made into the line
    pub fn invoke<const N: usize, const C: usize>(
        &self,
        request: userlib::cap::Request<N, C>,
    ) -> SyscallCall<'_, Trap> {
        let caps = request.caps.map(|cap| cap.0);
        self.call(request.target.0, request.label, &request.args, &caps)
    }

    /// As [`SyscallRing::call_linked`], of invocations as `userlib` makes them.
    pub fn invoke_linked<const N: usize, const C: usize, const M: usize, const D: usize>(
        &self,
        first: userlib::cap::Request<N, C>,
        second: userlib::cap::Request<M, D>,
    ) -> [SyscallCall<'_, Trap>; 2] {
        let (first_caps, second_caps) = (first.caps.map(|cap| cap.0), second.caps.map(|cap| cap.0));
        self.call_linked(
            Call { target: first.target.0, label: first.label, words: &first.args, caps: &first_caps },
            Call { target: second.target.0, label: second.label, words: &second.args, caps: &second_caps },
        )
    }
}
