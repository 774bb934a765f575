//! Moments of a run that can be asked for: a cycle, or the end of a text on the console.
//!
//! A run stops at the first block that comes behind the moment, in the middle of a hart's turn if need be, so that it can be saved there and
//! goes on as if it had not stopped. The hart whose turn it is is the one furthest behind: in timed mode the others have reached the cycle, too,
//! in fast mode some may be up to their slack short of it.

use crate::bus::Bus;
use crate::debug::{Debug, Stop};
use crate::hart::Hart;
use crate::hart::exec::Flow;

/// When.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The hart whose turn it is has reached this core cycle.
    Cycle(u64),
    /// The console has printed this.
    Text(String),
}

impl Moment {
    /// A number is a cycle, anything else a text.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Cycle)
    }

    /// It has come, or is over.
    pub(crate) fn has_come(&self, now: u64, bus: &Bus) -> bool {
        match self {
            Self::Cycle(cycle) => now >= *cycle,
            Self::Text(text) => bus.console.has_printed(text),
        }
    }
}

/// An observer that sees all that `observer` sees, and stops at the first of `moments`.
pub(crate) struct Until<'a, D> {
    pub observer: &'a mut D,
    pub moments: &'a [Moment],
}

impl<D> Until<'_, D> {
    fn check(&self, now: u64, bus: &Bus) -> Option<Stop> {
        self.moments.iter().any(|moment| moment.has_come(now, bus)).then_some(Stop::Moment)
    }
}

impl<D: Debug> Debug for Until<'_, D> {
    const ACTIVE: bool = true;

    fn before(&mut self, hart: &Hart, bus: &Bus) -> Result<u64, Stop> {
        self.check(hart.clock, bus).map_or(Ok(()), Err)?;
        if D::ACTIVE { self.observer.before(hart, bus) } else { Ok(u64::MAX) }
    }

    fn after(&mut self, hart: &Hart, flow: Flow) {
        self.observer.after(hart, flow);
    }

    fn between(&mut self, now: u64, bus: &Bus) -> Option<Stop> {
        self.check(now, bus).or_else(|| self.observer.between(now, bus))
    }

    fn only(&self) -> Option<usize> {
        self.observer.only()
    }
}
