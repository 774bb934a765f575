//! Visits every state that a model can reach, depth first, and says how the first bad one is reached.
//!
//! A state is bad if the model says so (safety), if nothing can happen in it although something is still to be done (a lost
//! wake-up), or if it can be reached from itself (a loop that need not end: a livelock). A model without bad states therefore
//! ends on every path, with everything done: that is the liveness half, and needs no assumption about fairness but that
//! what can happen does happen some time.
//!
//! Visited states are kept as 128-bit fingerprints (two SipHash-1-3 with different prefixes): at ten million states two
//! different ones share a fingerprint with a probability below 1e-24.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What can be explored.
pub trait Model: Clone + Hash {
    /// Something that happens.
    type Event: fmt::Debug;

    /// Everything that can happen now, each with the state after it.
    fn successors(&self) -> Vec<(Self::Event, Self)>;

    /// What is wrong with this state, whatever happens later.
    fn violation(&self) -> Option<String>;

    /// Whether nothing is left to be done.
    fn is_done(&self) -> bool;
}

/// How big a model was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// The longest path, in events.
    pub depth: usize,
}

/// A path to a bad state.
pub struct Counterexample {
    /// What is bad.
    pub what: String,
    /// What happened, first to last.
    pub path: Vec<String>,
}

impl fmt::Debug for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} after", self.what)?;
        self.path.iter().enumerate().try_for_each(|(number, event)| writeln!(f, "{number:4} {event}"))
    }
}

fn fingerprint(state: &impl Hash) -> u128 {
    let half = |prefix: u64| {
        let mut hasher = DefaultHasher::new();
        prefix.hash(&mut hasher);
        state.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// One state of the current path: what led to it, and what has not been tried in it.
struct Frame<M: Model> {
    event: Option<M::Event>,
    fingerprint: u128,
    untried: Vec<(M::Event, M)>,
}

/// Visits everything that can be reached from `start`.
///
/// # Errors
/// With the path to the first bad state.
pub fn explore<M: Model>(start: M) -> Result<Explored, Counterexample> {
    let mut visited = HashSet::new();
    let mut on_path = HashSet::new();
    let mut path: Vec<Frame<M>> = Vec::new();
    let mut depth = 0;
    let mut next = Some((None, start));
    loop {
        if let Some((event, state)) = next.take() {
            let fingerprint = fingerprint(&state);
            if on_path.contains(&fingerprint) {
                return Err(counterexample("a loop", &path, event));
            }
            if visited.insert(fingerprint) {
                if let Some(what) = state.violation() {
                    return Err(counterexample(&what, &path, event));
                }
                let untried = state.successors();
                if untried.is_empty() && !state.is_done() {
                    return Err(counterexample("nothing can happen, and not all is done", &path, event));
                }
                on_path.insert(fingerprint);
                path.push(Frame { event, fingerprint, untried });
                depth = depth.max(path.len() - 1);
            }
        }
        match path.last_mut() {
            None => return Ok(Explored { states: visited.len(), depth }),
            Some(frame) => match frame.untried.pop() {
                Some((event, state)) => next = Some((Some(event), state)),
                None => {
                    on_path.remove(&frame.fingerprint);
                    path.pop();
                }
            },
        }
    }
}

fn counterexample<M: Model>(what: &str, path: &[Frame<M>], last: Option<M::Event>) -> Counterexample {
    let events = path.iter().filter_map(|frame| frame.event.as_ref()).chain(&last);
    Counterexample { what: what.into(), path: events.map(|event| format!("{event:?}")).collect() }
}
