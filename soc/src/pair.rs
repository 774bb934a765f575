//! Two machines, back to back: each one's NIC is at one end of a cable.
//!
//! ```text
//!    first   ├───── slice ─────┤├───── slice ─────┤       slice = delay of the cable
//!    second  ├───── slice ─────┤├───── slice ─────┤
//!                 a frame sent here ──delay──▶ is due here or later, in a slice that has not begun
//! ```
//!
//! They run by turns, slice by slice, in one thread. So the order of everything follows from the two configurations, and equal pairs
//! give equal consoles and digests. A machine that has not touched its NIC hears nothing and may be ahead; it then hears late.

use crate::board::CYCLE;
use crate::config::Config;
use crate::error::SocError;
use crate::machine::Machine;
use crate::outcome::{End, Outcome};
use crate::time::SimTime;
use crate::wire::cable::Cable;
use crate::wire::{Link, Network};

/// A silent pair is at its end after this many slices: longer than any frame is on its way.
const SILENT_SLICES: u32 = 1000;

/// Two machines and the cable between them.
pub struct Pair {
    machines: [Machine; 2],
    cable: Cable,
    slice_cycles: u64,
}

impl Pair {
    /// Machines in reset with empty RAM. Of `net` in each configuration the NIC and the link count; there must be no peer. `delay` of
    /// the cable is at least a microsecond. Errors: as [`Machine::with_network`], and [`SocError::Network`].
    pub fn new(configs: [Config; 2], delay: SimTime) -> Result<Self, SocError> {
        let refuse = |reason: &str| Err(SocError::Network { reason: reason.to_owned() });
        if delay < SimTime::from_us(1) {
            return refuse("a cable between two machines has a delay of 1us or more");
        }
        if configs.iter().any(|config| config.net.peer.is_some()) {
            return refuse("at the far end of a pair's cable is the other machine");
        }
        let (cable, ends) = Cable::new(delay);
        let [first, second] = configs;
        let [near, far] = ends;
        let machine = |config: Config, end| {
            let link = Link::new(config.net.link, Box::new(end));
            Machine::with_network(config, Network { link: Some(link), report: None })
        };
        let machines = [machine(first, near)?, machine(second, far)?];
        Ok(Self { machines, cable, slice_cycles: delay.as_ps() / CYCLE.as_ps() })
    }

    /// The machines, to be loaded, listened to and looked at.
    pub fn machines(&mut self) -> &mut [Machine; 2] {
        &mut self.machines
    }

    /// Runs until the first machine ends, or both wait and nothing is under way. A second machine that ends earlier is silent from then on.
    pub fn run(&mut self) -> [Outcome; 2] {
        let mut ended: Option<Outcome> = None;
        let (mut target, mut silent, mut carried) = (0u64, 0, 0);
        loop {
            target = target.saturating_add(self.slice_cycles);
            if let Some(outcome) = self.machines[0].run_to(target) {
                let second = ended.unwrap_or_else(|| self.machines[1].outcome(End::CycleLimit));
                return [outcome, second];
            }
            self.cable.reached(0, crate::board::at_cycle(target));
            if ended.is_none() {
                ended = self.machines[1].run_to(target);
            }
            self.cable.reached(1, crate::board::at_cycle(target));
            let (under_way, ever) = self.cable.frames();
            let waits = self.machines[0].only_listens() && (ended.is_some() || self.machines[1].only_listens());
            silent = if waits && under_way == 0 && ever == carried { silent + 1 } else { 0 };
            carried = ever;
            if silent == SILENT_SLICES {
                let [first, second] = &mut self.machines;
                let second = ended.unwrap_or_else(|| second.outcome(End::IdleDeadlock));
                return [first.outcome(End::IdleDeadlock), second];
            }
        }
    }
}
