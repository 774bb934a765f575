//! The task that drives the stack: polls it when the device interrupts, when somebody has queued something to send, and when
//! time has come to retransmit.
//!
//! An interrupt stays masked in the kernel until it is acknowledged there; that is done when the frames are drained, so under load the
//! device does not interrupt at all while the task goes round with [`Polled::More`]. The device's own status is acknowledged before
//! draining: what arrives in between interrupts again as soon as the kernel lets it.
//!
//! smoltcp's deadlines (retransmission, delayed acknowledgement, keeping a closed connection) are many and mostly moved before they are due, and asking
//! for the earliest costs a walk over all sockets. So after activity the alarm is merely made to come within [`TICK`], which under load it nearly
//! always is already; only when it comes is the earliest deadline asked for. A deadline is met at most one tick late, and a stack without any does
//! not wake up.

use core::cell::RefCell;
use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};

use drivers::Registers;
use drivers::goldfish_rtc::GoldfishRtc;
use libipc::executor::Events;
use smoltcp::time::{Duration, Instant};

use crate::stack::{Polled, Stack, Wire};

/// How late a deadline may be met.
pub const TICK: Duration = Duration::from_millis(20);

/// A timer that interrupts once.
pub trait Alarm {
    /// Fires `delay` from now, instead of when it would have.
    fn set(&mut self, delay: Duration);
    /// Ends its interrupt.
    fn acknowledge(&mut self);
}

impl<R: Registers> Alarm for GoldfishRtc<R> {
    fn set(&mut self, delay: Duration) {
        self.set_alarm(delay.total_micros() * 1000);
    }
    fn acknowledge(&mut self) {
        GoldfishRtc::acknowledge(self);
    }
}

/// No timer: deadlines are met when something else happens. A peer that waits for our retransmission mostly sends again itself.
pub struct NoAlarm;

impl Alarm for NoAlarm {
    fn set(&mut self, _: Duration) {}
    fn acknowledge(&mut self) {}
}

/// The interrupts of a stack: the doorbell bits they set, and how the kernel is told to pass on the next.
pub struct Interrupts<'a> {
    /// The doorbell's bits.
    pub events: &'a Events,
    /// The bits of the interrupts: of the network device, and last that of the alarm, if it has one.
    pub bits: &'a [u32],
    /// How many of them are the network device's.
    pub device: usize,
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
pub struct Clock {
    ticks: fn() -> u64,
    ticks_per_microsecond: u64,
}

impl Clock {
    /// A clock that counts `hz` times a second; below 1 MHz it runs as if it were 1 MHz.
    pub fn new(hz: u64, ticks: fn() -> u64) -> Self {
        Self { ticks, ticks_per_microsecond: (hz / 1_000_000).max(1) }
    }

    /// Time since the machine started.
    pub fn now(&self) -> Instant {
        Instant::from_micros(((self.ticks)() / self.ticks_per_microsecond) as i64)
    }
}

/// When the alarm will come.
struct Deadline<A> {
    alarm: A,
    at: Option<Instant>,
}

impl<A: Alarm> Deadline<A> {
    /// After a poll for another reason: makes sure that the alarm comes within a tick.
    fn within_tick(&mut self, now: Instant) {
        if self.at.is_none_or(|at| at > now + TICK) {
            self.set(now, TICK);
        }
    }

    /// After the alarm has come: sets it for the next deadline, if there is one.
    fn renew(&mut self, now: Instant, due: Option<Instant>) {
        self.at = None;
        if let Some(due) = due {
            self.set(now, if due > now + TICK { due - now } else { TICK });
        }
    }

    fn set(&mut self, now: Instant, delay: Duration) {
        self.alarm.set(delay);
        self.at = Some(now + delay);
    }
}

/// Drives `stack` until its device fails for good.
pub async fn drive<D: Wire>(
    stack: &RefCell<Stack<D>>,
    interrupts: Interrupts<'_>,
    alarm: impl Alarm,
    clock: &Clock,
) -> Result<Infallible, D::Error> {
    let mut deadline = Deadline { alarm, at: None };
    let mut fired = 0;
    let mut polled = Polled::Done;
    loop {
        fired |= poll_fn(|cx| {
            let fired = interrupts.take(cx);
            let requested = stack.borrow_mut().poll_requested(cx.waker());
            if fired != 0 || requested || polled == Polled::More { Poll::Ready(fired) } else { Poll::Pending }
        })
        .await;
        {
            let stack = &mut *stack.borrow_mut();
            let alarm = fired >> interrupts.device != 0;
            if alarm {
                deadline.alarm.acknowledge();
            }
            if fired & !(u64::MAX << interrupts.device) != 0 {
                stack.device().acknowledge()?;
            }
            let now = clock.now();
            if alarm {
                let due;
                (polled, due) = stack.poll_deadlines(now);
                deadline.renew(now, due);
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
