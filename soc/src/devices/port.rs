//! A MAC's socket for the cable: the near end of a [`Link`], or nothing if no cable is plugged in.
//!
//! The peer at the far end wakes up with the first access to the device; before that nobody listens. The device calls
//! [`Port::poll`] after whatever happens to it, and on the port's own events.

use super::timer::Timer;
use crate::device::{Context, Exit};
use crate::error::SocError;
use crate::time::SimTime;
use crate::wire::{Arrival, Link};
use serde::{Deserialize, Serialize};

/// The socket.
#[derive(Serialize, Deserialize)]
pub(crate) struct Port {
    link: Option<Link>,
    wake: Timer,
    peer_done: bool,
}

impl Port {
    /// A socket with a cable in it or none; `kind` names its timer among those of the device.
    pub(crate) fn new(link: Option<Link>, kind: u8) -> Self {
        Self { link, wake: Timer::new(kind), peer_done: false }
    }

    /// The link, if a cable is plugged in.
    pub(crate) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Puts a frame on the wire and tells when the wire is free for the next one; none without a cable. `intact` as
    /// [`Link::send`].
    pub(crate) fn send(&mut self, cx: &dyn Context, frame: Vec<u8>, intact: bool) -> Option<SimTime> {
        Some(self.link.as_mut()?.send(cx.now(), frame, intact))
    }

    /// Runs the far end up to the present and gives the frames that have arrived. Tells the machine when the peer has finished.
    pub(crate) fn poll(&mut self, cx: &mut dyn Context) -> Vec<Arrival> {
        let Some(link) = &mut self.link else { return Vec::new() };
        let now = cx.now();
        let wake = link.advance(now);
        let arrivals = core::iter::from_fn(|| link.receive(now)).collect();
        match wake {
            Some(at) if self.wake.due() != Some(at) => self.wake.arm(cx, at.max(now)),
            _ => {}
        }
        if link.finished() && !self.peer_done {
            self.peer_done = true;
            cx.stop(Exit::PeerDone);
        }
        arrivals
    }

    /// Error: what is at the far end cannot be put there again ([`Link::check_repeatable`]).
    pub(crate) fn check_repeatable(&self) -> Result<(), SocError> {
        self.link.as_ref().map_or(Ok(()), Link::check_repeatable)
    }

    /// Takes the cable of `new`, a port that nothing has happened to, and brings its far end up to where this port was saved.
    /// Error: one has a cable and the other none.
    pub(crate) fn plug_in(&mut self, new: &mut Port) -> Result<(), SocError> {
        match (&mut self.link, new.link.take()) {
            (Some(link), Some(new)) => link.take_peer(new),
            (None, None) => {}
            _ => {
                let reason = "the machine had a cable and this one has none, or the other way round".to_owned();
                return Err(SocError::Snapshot { reason });
            }
        }
        Ok(())
    }

    /// Takes an event; true if it was the port's, and [`Port::poll`] is due.
    pub(crate) fn event(&mut self, token: u64) -> bool {
        self.wake.fires(token)
    }
}
