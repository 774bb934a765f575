//! The task that drives the stack: polls it when the device interrupts, when somebody has queued something to send, and when
//! time has come to retransmit.
//!
//! An interrupt stays masked in the kernel until it is acknowledged there; that is done when the frames are drained, so under load the
//! device does not interrupt at all while the task goes round with [`Polled::More`]. The device's own status is acknowledged before
//! draining: what arrives in between interrupts again as soon as the kernel lets it.
//!
//! smoltcp's deadlines (retransmission, delayed acknowledgement, keeping a closed connection) are many and mostly moved before they are due, and asking
//! for the earliest costs a walk over all sockets. So after activity a timer is merely made to come within [`TICK`], which under load it nearly
//! always is already; only when it comes is the earliest deadline asked for. A deadline is met at most one tick late, and a stack without any does
//! not wake up.

use core::cell::RefCell;
use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use libipc::executor::timer::Timer;
use libipc::executor::{Events, Timers};
use smoltcp::time::{Duration, Instant};

use crate::stack::{Polled, Stack, Wire};

/// How late a deadline may be met.
pub const TICK: Duration = Duration::from_millis(20);

/// The interrupts of the network device: the doorbell bits they set, and how the kernel is told to pass on the next.
pub struct Interrupts<'a> {
    /// The doorbell's bits.
    pub events: &'a Events,
    /// The bits of the interrupts.
    pub bits: &'a [u32],
    /// Lets the kernel pass on the next interrupt of bit `bits[i]`.
    pub pass_next: &'a dyn Fn(usize),
}

impl Interrupts<'_> {
    /// Bit i of the result: interrupt i has come. Those that have not will wake the task.
    fn take(&self, cx: &mut Context<'_>) -> u64 {
        let come = |index: &usize| pin!(self.events.event(self.bits[*index])).poll(cx).is_ready();
        (0..self.bits.len()).filter(come).fold(0, |fired, index| fired | 1 << index)
    }

    fn done(&self, fired: u64) {
        (0..self.bits.len()).filter(|index| fired >> index & 1 != 0).for_each(self.pass_next);
    }
}

/// The clock of the machine as smoltcp's time.
pub struct Clock<'a> {
    clock: &'a dyn libipc::executor::Clock,
    ticks_per_microsecond: u64,
}

impl<'a> Clock<'a> {
    /// What `clock` shows; if it counts less than a million times a second, as if it were a million.
    pub fn new(clock: &'a dyn libipc::executor::Clock) -> Self {
        Self { clock, ticks_per_microsecond: (clock.hz() / 1_000_000).max(1) }
    }

    /// Time since the machine started.
    pub fn now(&self) -> Instant {
        Instant::from_micros((self.clock.now() / self.ticks_per_microsecond) as i64)
    }
}

/// The timer of the stack, and when it will come.
struct Deadline<'t, 'c> {
    timers: &'t Timers<'c>,
    timer: Option<(Instant, Timer<'t, 'c>)>,
}

impl Deadline<'_, '_> {
    /// Whether the timer has come. If not, it will wake the task.
    fn has_come(&mut self, cx: &mut Context<'_>) -> bool {
        self.timer.as_mut().is_some_and(|(_, timer)| Pin::new(timer).poll(cx).is_ready())
    }

    /// After a poll for another reason: makes sure that the timer comes within a tick.
    fn within_tick(&mut self, now: Instant) {
        if self.timer.as_ref().is_none_or(|(at, _)| *at > now + TICK) {
            self.set(now, TICK);
        }
    }

    /// After the timer has come: sets it for the next deadline, if there is one.
    fn renew(&mut self, now: Instant, due: Option<Instant>) {
        self.timer = None;
        if let Some(due) = due {
            self.set(now, if due > now + TICK { due - now } else { TICK });
        }
    }

    fn set(&mut self, now: Instant, delay: Duration) {
        let timer = self.timers.sleep(self.timers.ticks(delay.total_micros()));
        self.timer = Some((now + delay, timer));
    }
}

/// Drives `stack` until its device fails for good.
pub async fn drive<D: Wire>(
    stack: &RefCell<Stack<D>>,
    interrupts: Interrupts<'_>,
    timers: &Timers<'_>,
    clock: &Clock<'_>,
) -> Result<Infallible, D::Error> {
    let mut deadline = Deadline { timers, timer: None };
    let mut fired = 0;
    let mut polled = Polled::Done;
    loop {
        let mut due = false;
        poll_fn(|cx| {
            fired |= interrupts.take(cx);
            due = deadline.has_come(cx);
            let requested = stack.borrow_mut().poll_requested(cx.waker());
            if fired != 0 || due || requested || polled == Polled::More { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        {
            let stack = &mut *stack.borrow_mut();
            if fired != 0 {
                stack.device().acknowledge()?;
            }
            let now = clock.now();
            if due {
                let next;
                (polled, next) = stack.poll_deadlines(now);
                deadline.renew(now, next);
            } else {
                polled = stack.poll(now);
                deadline.within_tick(now);
            }
        }
        match polled {
            Polled::More => yield_once().await,
            Polled::Done => interrupts.done(core::mem::take(&mut fired)),
        }
    }
}

/// Lets every other ready task run once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if core::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
