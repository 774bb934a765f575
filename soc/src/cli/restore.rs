//! `soc restore`: a machine out of a snapshot.

use super::read;
use super::watch::Watch;
use crate::snapshot::Snapshot;
use crate::symbols::Symbols;
use crate::{Config, Machine};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Restore {
    /// A file that soc run --snapshot has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The image that the machine was started from, for names of functions
    #[arg(long, value_name = "IMAGE.elf")]
    symbols: Option<PathBuf>,
    #[command(flatten)]
    watch: Watch,
}

impl Restore {
    /// Does it; gives the exit code.
    pub(super) fn go(&self) -> Result<u8, String> {
        let file = read(&self.file)?;
        let in_file = |error: crate::SocError| format!("{}: {error}", self.file.display());
        let mut snapshot = Snapshot::read(&file).map_err(in_file)?;
        let net = self.watch.capture(snapshot.config.net.clone())?;
        snapshot.config = Config { max_cycles: self.watch.max_cycles, net, ..snapshot.config };
        let mut network = snapshot.config.net.clone().build().map_err(|error| format!("--pcap: {error}"))?;
        let frames = self.watch.prepare(&mut network);
        let mut machine = Machine::restore_with_network(snapshot, network).map_err(in_file)?;
        let symbols = match &self.symbols {
            Some(path) => Symbols::of(&read(path)?),
            None => Symbols::default(),
        };
        self.watch.drive(&mut machine, frames, &symbols)
    }
}
