//! What a phase drives: one TCP connection, one UDP conversation, or one stream of pings.

use super::config::{LoadGenConfig, Operation};
use super::tally::Tally;
use crate::time::SimTime;
use crate::wire::stack::Stack;

/// One independent conversation with the guest.
pub(super) trait Flow: Send {
    /// Requests can be started, or never will be.
    fn ready(&self) -> bool;
    /// No request is under way.
    fn quiet(&self) -> bool;
    /// The orderly end has begun and is not over.
    fn closing(&self) -> bool;
    /// Nothing is left to do; the socket can go.
    fn done(&self) -> bool;
    /// Requests answered so far, warm-up included.
    fn answered(&self) -> u64;
    /// When the flow needs attention even if nothing arrives. `work_left`: requests may be started.
    fn wake(&self, operation: Operation, work_left: bool) -> Option<SimTime>;
    /// Does what can be done at `now`. Returns true if the stack has to run again.
    fn step(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool;
    /// Starts the orderly end of a flow that is ready and quiet.
    fn close(&mut self, host: &mut Stack, config: &LoadGenConfig, now: SimTime);
    /// Takes the socket out of the stack.
    fn remove(&self, host: &mut Stack);
}
