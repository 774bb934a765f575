//! Coroutines of one thread: a fixed pool of tasks, a ready set, and a loop that sleeps no deeper than it must.
//!
//! ```text
//!            wake: bit set              run_ready: bit cleared, polled
//!   waiting ───────────────> ready ────────────────────────────────> running ──> done
//!      ^                                                                │
//!      '──────────────────────── Pending ───────────────────────────────'
//!
//!   round:  bits = port.take() ─> links.poll(bits) ─> run_ready ─> anything ready? ─yes─> links.publish ─> round
//!                                                                       │no
//!                                                                     idle, which publishes (see `idle`)
//! ```
//!
//! One round drains every ring, then runs every ready task once, then publishes: so what the tasks send in a round is one
//! batch, and costs one fence and at most one bell per channel. A task that wakes itself runs in the next round; it cannot
//! starve others.
//!
//! Nothing is allocated after a task was spawned. Wakers are addresses of bits of the ready set; they may be called from
//! anywhere, but an executor that waits in the kernel is woken by its doorbell only: other threads reach it
//! through channels.

pub mod events;
pub mod idle;
mod pool;
mod ready;
pub mod timer;
mod tree;

use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::task::Waker;

use crate::bell::{Doze, full_fence};
use crate::port::{Patience, Port};
use idle::Idle;
use pool::Pool;

pub use events::Events;
#[cfg(all(test, not(loom)))]
pub(crate) use ready::ReadySet;
pub(crate) use ready::wake_own;
pub use timer::{Clock, Timers};
pub use tree::{Observer, Tree};

/// What an executor looks after besides its tasks: a client, a server, the events of devices.
pub trait Link {
    /// Takes in what the peers sent, waking who waits for it. `bits` are the doorbell bits that came; a link must not rely on
    /// them. Returns whether anything came.
    fn poll(&self, bits: u64) -> bool;

    /// Tells the peers of what was pushed since the last call.
    fn publish(&self);

    /// Announces a doze to the peers. A full fence and [`Link::is_ready`] follow before it is acted on.
    fn doze(&self, doze: Doze);

    /// Whether [`Link::poll`] would find something.
    fn is_ready(&self) -> bool;

    /// The end of a round that leaves nothing to do: [`Link::publish`], [`Link::doze`], full fence, [`Link::is_ready`]. All in one, because
    /// with one call in flight a round is not much more than its links' calls. As publishing may, it may wake tasks.
    fn settle(&self, doze: Doze) -> bool {
        self.publish();
        self.doze(doze);
        full_fence();
        self.is_ready()
    }

    /// The beginning of the round after a doze: [`Link::doze`] and [`Link::poll`].
    fn resume(&self, bits: u64) -> bool {
        self.doze(Doze::Running);
        self.poll(bits)
    }

    /// Calls `visit` for everybody who waits here, with what for: the raw material of an await tree.
    fn waits(&self, _visit: &mut dyn FnMut(Wait, &Waker)) {}
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The reply to a call.
    Reply {
        /// The call.
        cookie: u64,
    },
    /// A credit for a call.
    Credit,
    /// A server to come back.
    Server,
    /// A request.
    Request,
    /// The end of a request's wish to be answered.
    Cancellation {
        /// The channel of the request.
        channel: usize,
    },
    /// Leave to send another completion.
    Window {
        /// The channel of the request.
        channel: usize,
    },
    /// A time.
    Time {
        /// Ticks of the clock.
        at: u64,
    },
    /// The kernel to carry a system call out.
    Kernel {
        /// Line of the ring.
        line: usize,
    },
    /// A bit of the doorbell, such as a device's interrupt.
    Event {
        /// Its number.
        bit: u32,
    },
}

/// The pool is full; here is the task back.
pub struct PoolFull<F>(pub F);

impl<F> core::fmt::Debug for PoolFull<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the executor's task pool is full")
    }
}

/// Counts of one executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Rounds.
    pub rounds: u64,
    /// Task polls.
    pub polls: u64,
    /// Times it armed itself.
    pub arms: u64,
    /// Times it waited in the kernel.
    pub parks: u64,
}

/// [`Statistics`] as they are counted.
#[derive(Default)]
pub(crate) struct Counters {
    rounds: Cell<u64>,
    polls: Cell<u64>,
    arms: Cell<u64>,
    parks: Cell<u64>,
}

/// Adds to a counter.
#[inline] // three instructions
fn count(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get() + more);
}

/// The executor. Tasks may borrow what outlives it.
pub struct Executor<'a> {
    pool: Rc<Pool<'a>>,
    links: Rc<RefCell<Vec<&'a dyn Link>>>,
    counters: Counters,
    /// By which to record when tasks run.
    clock: Cell<Option<&'a dyn Clock>>,
}

impl<'a> Executor<'a> {
    /// An executor for at most `capacity` tasks at a time.
    pub fn new(capacity: usize) -> Self {
        Self::with_levels(&[capacity])
    }

    /// An executor with levels of urgency, the most urgent first, for so many tasks each. A round runs the ready tasks of one level: the
    /// most urgent that has any. So a less urgent task waits as long as more urgent ones have something to do, and no longer than the round of
    /// its own level delays a more urgent one.
    ///
    /// # Panics
    /// If there is no level.
    pub fn with_levels(capacities: &[usize]) -> Self {
        assert!(!capacities.is_empty(), "tasks need a level");
        Self {
            pool: Rc::new(Pool::new(capacities)),
            links: Rc::default(),
            counters: Counters::default(),
            clock: Cell::new(None),
        }
    }

    /// From now on records when each task runs, for [`Observer::tree`]: costs a look at the clock each round, and a store each poll.
    pub fn record(&self, clock: &'a dyn Clock) {
        self.clock.set(Some(clock));
    }

    /// A handle for looking at the tasks, from inside a task or from outside.
    pub fn observer(&self) -> Observer<'a> {
        Observer::new(&self.pool, &self.links)
    }

    /// Looks after `link` from now on.
    pub fn attach(&self, link: &'a dyn Link) {
        self.links.borrow_mut().push(link);
    }

    /// Starts a task, at the least urgent level.
    ///
    /// # Errors
    /// If the level is full.
    pub fn spawn<F: Future<Output = ()> + 'a>(&self, task: F) -> Result<(), PoolFull<F>> {
        self.pool.spawn(self.pool.default_level(), "", task)
    }

    /// Starts a task at `level`, 0 being the most urgent; `name` is for those who look.
    ///
    /// # Errors
    /// If the level is full.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn spawn_at<F: Future<Output = ()> + 'a>(
        &self,
        level: usize,
        name: &'static str,
        task: F,
    ) -> Result<(), PoolFull<F>> {
        self.pool.spawn(level, name, task)
    }

    /// A handle for starting tasks from inside tasks.
    pub fn spawner(&self) -> Spawner<'a> {
        Spawner { pool: Rc::downgrade(&self.pool) }
    }

    /// Runs until no task is left.
    pub fn run<P: Port>(&self, port: &P) {
        self.run_with(port, port.patience());
    }

    /// As [`Executor::run`], with another patience than the port's.
    pub fn run_with<P: Port>(&self, port: &P, patience: Patience) {
        // Links are attached before the run: one copy, so that the loop borrows nothing.
        let links: Box<[&'a dyn Link]> = self.links.borrow().as_slice().into();
        let mut idle = Idle::new(patience);
        let mut bits = 0;
        while self.pool.live() > 0 {
            let bits_now = bits | port.take();
            let dozed = core::mem::take(&mut idle.dozes);
            for link in &links {
                if dozed {
                    link.resume(bits_now)
                } else {
                    link.poll(bits_now)
                };
            }
            bits = 0;
            let polls = match self.clock.get() {
                None => self.pool.run_ready(),
                Some(clock) => self.pool.run_ready_at(clock.now()),
            };
            count(&self.counters.polls, polls);
            count(&self.counters.rounds, 1);
            if self.pool.any_ready() || self.pool.live() == 0 {
                links.iter().for_each(|link| link.publish());
                port.flush();
            } else {
                bits = idle.wait(port, &links, &self.counters, || self.pool.any_ready());
            }
        }
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        let Counters { rounds, polls, arms, parks } = &self.counters;
        Statistics { rounds: rounds.get(), polls: polls.get(), arms: arms.get(), parks: parks.get() }
    }
}

/// Starts tasks on an executor that may be gone.
#[derive(Clone)]
pub struct Spawner<'a> {
    pool: Weak<Pool<'a>>,
}

impl<'a> Spawner<'a> {
    /// Starts a task, at the least urgent level.
    ///
    /// # Errors
    /// If the level is full or the executor gone.
    pub fn spawn<F: Future<Output = ()> + 'a>(&self, task: F) -> Result<(), PoolFull<F>> {
        match self.pool.upgrade() {
            Some(pool) => pool.spawn(pool.default_level(), "", task),
            None => Err(PoolFull(task)),
        }
    }
}

/// Ends the round of every link; whether any has something.
#[inline] // once per round
fn settle(links: &[&dyn Link], doze: Doze) -> bool {
    // All of them, whatever the first one has.
    links.iter().fold(false, |any, link| link.settle(doze) | any)
}

/// Whether any link has something.
#[inline] // the body of the idle loop
fn any_ready(links: &[&dyn Link]) -> bool {
    links.iter().any(|link| link.is_ready())
}
