//! What an executor does when no task is ready: it goes to sleep in stages, each deeper and cheaper for others.
//!
//! ```text
//!   publish
//!     │
//!   look     Running: polls the rings
//!     │ none of `polls` looks found anything
//!   settle(Armed): doze, fence, publish, look     (where peers can reach a running thread)
//!     │
//!   watch    Armed: polls the doorbell's word only
//!     │ nothing in `watches` looks
//!   settle(Blocked): doze, fence, publish, look
//!     │
//!   park     Blocked: waits in the kernel
//! ```
//!
//! Any success leads to the next round, which says Running again if a doze was announced. "Doze, fence, look" is what makes the bell safe
//! ([`crate::bell`]), and so does the same fence between what was pushed and the look at the peers' dozes: an executor without patience,
//! one that has the hart to itself, begins with the last `settle`, and publishes and announces in one go. Publishing may wake tasks, so each
//! settle is followed by a look at the ready set too.
//!
//! How long each stage lasts adapts (`Trial`): where looking never helps it soon is not done any more; with a busy peer on
//! another hart it mostly helps and stays. A stage of no length is passed over, its announcement included. With a peer of the own hart
//! to wake ([`Port::owes`]) there is nothing to wait for: the executor parks at once, and parking is switching to that peer.

use crate::bell::Doze;
use crate::executor::{Counters, Link, any_ready, count, settle};
use crate::port::{Patience, Port};

/// How often to try something that may be in vain: at most `max` times, halved by each failure, restored by a success. Once
/// it is down to nothing, every 32nd time a quarter of the most is tried, to notice that times have changed.
struct Trial {
    max: u32,
    now: u32,
    skipped: u32,
}

impl Trial {
    const RETRY: u32 = 32;

    fn new(max: u32) -> Self {
        Self { max, now: max, skipped: 0 }
    }

    /// How many tries this time.
    fn tries(&mut self) -> u32 {
        if self.now == 0 {
            self.skipped += 1;
            if self.skipped == Self::RETRY {
                self.skipped = 0;
                return self.max.div_ceil(4);
            }
        }
        self.now
    }

    /// What came of `tries` tries.
    fn learn(&mut self, tries: u32, success: bool) {
        if success {
            self.now = self.max;
        } else if tries > 0 {
            self.now /= 2;
        }
    }
}

/// The stages with what was learnt about them.
pub(crate) struct Idle {
    /// There are stages before Blocked.
    patient: bool,
    /// Peers were told that this thread dozes, and not yet that it does not.
    pub(crate) dozes: bool,
    polls: Trial,
    watches: Trial,
}

impl Idle {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patient: patience != Patience::NONE,
            dozes: false,
            polls: Trial::new(patience.polls),
            watches: Trial::new(patience.watches),
        }
    }

    /// Publishes, then returns when a link has something, bits came, or publishing has woken a task, which `woken` tells. The bits are
    /// returned.
    #[inline] // with one call in flight, most of what an executor does
    pub(crate) fn wait<P: Port>(
        &mut self,
        port: &P,
        links: &[&dyn Link],
        counters: &Counters,
        woken: impl Fn() -> bool,
    ) -> u64 {
        if self.patient
            && let Some(bits) = self.linger(port, links, counters, &woken)
        {
            port.flush();
            return bits;
        }
        self.dozes = true;
        if settle(links, Doze::Blocked) || woken() {
            port.flush();
            return 0;
        }
        count(&counters.parks, 1);
        port.park()
    }

    /// The stages before Blocked.
    #[inline(never)] // its registers would burden those who have no such stages
    fn linger<P: Port>(
        &mut self,
        port: &P,
        links: &[&dyn Link],
        counters: &Counters,
        woken: impl Fn() -> bool,
    ) -> Option<u64> {
        links.iter().for_each(|link| link.publish());
        if woken() {
            return Some(0);
        }
        if port.owes() {
            return None;
        }
        // The first look is free: under load it succeeds, and says nothing about patience.
        if any_ready(links) || self.look(links) {
            return Some(0);
        }
        if port.can_arm() { self.watch(port, links, counters, woken) } else { None }
    }

    #[inline] // where an executor of two harts waits for its next message
    fn look(&mut self, links: &[&dyn Link]) -> bool {
        let tries = self.polls.tries();
        let found = (0..tries).any(|_| any_ready(links));
        self.polls.learn(tries, found);
        found
    }

    fn watch<P: Port>(
        &mut self,
        port: &P,
        links: &[&dyn Link],
        counters: &Counters,
        woken: impl Fn() -> bool,
    ) -> Option<u64> {
        let tries = self.watches.tries();
        if tries == 0 {
            return None;
        }
        count(&counters.arms, 1);
        self.dozes = true;
        if settle(links, Doze::Armed) || woken() {
            return Some(0);
        }
        let bits = (0..tries).map(|_| port.take()).find(|bits| *bits != 0);
        self.watches.learn(tries, bits.is_some());
        bits
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn patience_wears_out_and_is_tried_again() {
        let mut trial = Trial::new(16);
        for expected in [16, 8, 4, 2, 1] {
            let tries = trial.tries();
            assert_eq!(tries, expected);
            trial.learn(tries, false);
        }
        let tries: Vec<u32> = (0..64)
            .map(|_| {
                let tries = trial.tries();
                trial.learn(tries, false);
                tries
            })
            .collect();
        assert_eq!(tries.iter().filter(|tries| **tries == 4).count(), 2);
        assert_eq!(tries.iter().filter(|tries| **tries == 0).count(), 62);
        trial.learn(4, true);
        assert_eq!(trial.tries(), 16);
    }
}
