//! A machine into a snapshot and out of it again; the file's form is in [`crate::snapshot`].

use super::{Core, Engine, Machine, SplitMix, Turn};
use crate::bus::SavedBus;
use crate::error::SocError;
use crate::hart::Hart;
use crate::snapshot::{self, Snapshot, State};
use crate::wire::Network;
use serde::{Deserialize, Serialize};

/// All but configuration and pages.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedMachine {
    device_tree: Vec<u8>,
    harts: Vec<State>,
    /// The cost model; none in fast mode.
    timing: Option<State>,
    bus: SavedBus,
    random: Option<SplitMix>,
    interrupted: Option<Turn>,
}

impl SavedMachine {
    /// Number of harts.
    pub fn harts(&self) -> usize {
        self.harts.len()
    }
}

impl Machine {
    /// The whole state as a file. If a peer is at the far end of the wire, [`crate::wire::Link::keep_calls`] must have been called.
    ///
    /// Error: [`SocError::Snapshot`], if the peer cannot be saved; [`SocError::Disk`].
    pub fn snapshot(&self) -> Result<Vec<u8>, SocError> {
        let Core { harts, bus, schedule, interrupted, .. } = &self.core;
        let saved = SavedMachine {
            device_tree: self.device_tree.clone(),
            harts: harts.iter().map(State::of).collect::<Result<_, _>>()?,
            timing: match &self.engine {
                Engine::Fast(_) => None,
                Engine::Timed(timing) => Some(State::of(timing)?),
            },
            bus: bus.save()?,
            random: schedule.random.clone(),
            interrupted: *interrupted,
        };
        snapshot::write(&self.config, &saved, &bus.ram)
    }

    /// The machine of a snapshot. Errors: as [`Machine::new`], and [`SocError::Snapshot`] if its parts do not fit together.
    pub fn restore(snapshot: Snapshot) -> Result<Self, SocError> {
        let network = super::network(&snapshot.config)?;
        Self::restore_with_network(snapshot, network)
    }

    /// The same with a network of the caller's own, which must be a new one of the kind that the saved machine had.
    pub fn restore_with_network(snapshot: Snapshot, network: Network) -> Result<Self, SocError> {
        let mut machine = Self::with_network(snapshot.config.clone(), network)?;
        snapshot.fill(&mut machine.core.bus.ram)?;
        let saved = snapshot.machine;
        machine.device_tree = saved.device_tree;
        machine.core.harts = saved.harts.iter().map(State::read).collect::<Result<Vec<Hart>, _>>()?;
        for hart in &mut machine.core.harts {
            hart.update_contexts();
        }
        let placed = machine.core.harts.iter().enumerate().all(|(id, hart)| hart.id == id);
        let turn_fits = saved.interrupted.is_none_or(|turn| turn.hart < machine.core.harts.len());
        match (&mut machine.engine, &saved.timing) {
            (Engine::Fast(_), None) if placed && turn_fits => {}
            (Engine::Timed(timing), Some(state)) if placed && turn_fits => **timing = state.read()?,
            _ => return Err(SocError::Snapshot { reason: "its harts do not fit its configuration".to_owned() }),
        }
        machine.core.bus.restore(saved.bus)?;
        machine.core.schedule.random = saved.random;
        machine.core.interrupted = saved.interrupted;
        Ok(machine)
    }
}
