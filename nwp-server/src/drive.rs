//! The task that drives the stack: polls it when the device interrupts, when somebody has queued something to send, and when
//! time has come to retransmit.
//!
//! An interrupt stays masked in the kernel until it is acknowledged there; that is done when the frames are drained, so under load the
//! device does not interrupt at all while the task goes round with [`Polled::More`]. The device's own status is acknowledged before
//! draining: what arrives in between interrupts again as soon as the kernel lets it.

use core::cell::RefCell;
use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};

use drivers::axinic;
use libipc::executor::Events;
use smoltcp::time::Instant;

use crate::stack::{Polled, Stack, Wire};

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

/// Drives `stack` until its device fails for good. `bits` are the doorbell bits of the device's interrupts; `acknowledge(i)` lets the kernel pass on
/// the next one of bit `bits[i]`.
pub async fn drive<D: Wire>(
    stack: &RefCell<Stack<D>>,
    events: &Events,
    bits: &[u32],
    acknowledge: impl Fn(usize),
    clock: &Clock,
) -> Result<Infallible, axinic::Error> {
    let mut fired = 0u64;
    let mut polled = Polled::Done;
    loop {
        fired |= poll_fn(|cx| {
            let fired = take_fired(events, bits, cx);
            let requested = stack.borrow_mut().poll_requested(cx.waker());
            if fired != 0 || requested || polled == Polled::More { Poll::Ready(fired) } else { Poll::Pending }
        })
        .await;
        {
            let mut stack = stack.borrow_mut();
            if fired != 0 {
                stack.device().acknowledge()?;
            }
            polled = stack.poll(clock.now());
        }
        match polled {
            Polled::More => yield_once().await,
            Polled::Done => {
                (0..bits.len()).filter(|index| fired >> index & 1 != 0).for_each(&acknowledge);
                fired = 0;
            }
        }
    }
}

/// Bit i of the result: the event of `bits[i]` has come. Those that have not will wake the task.
fn take_fired(events: &Events, bits: &[u32], cx: &mut Context<'_>) -> u64 {
    let mut fired = 0;
    for (index, &bit) in bits.iter().enumerate() {
        if pin!(events.event(bit)).poll(cx).is_ready() {
            fired |= 1 << index;
        }
    }
    fired
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
