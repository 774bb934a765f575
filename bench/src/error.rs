//! Why there are no results. Each is one line; what the guest said on its console comes before it.

use std::path::PathBuf;

use crate::figure::FigureError;
use crate::results::WriteError;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The image of a point could not be built.
    #[error(transparent)]
    Image(#[from] images::Error),
    /// The machine refuses its configuration.
    #[error(transparent)]
    Machine(#[from] soc::SocError),
    /// The machine refuses its network.
    #[error(transparent)]
    Network(#[from] soc::wire::loadgen::ConfigError),
    /// The guest ended in a way that is no success.
    #[error("{label}: {end}; its console is above")]
    Guest {
        /// Which point.
        label: String,
        /// How it ended.
        end: String,
    },
    /// The guest ended well, but has not measured what it was asked to.
    #[error("{label}: {reason}")]
    Measurement {
        /// Which point.
        label: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// The model and the RTL do not agree.
    #[error("{} points are wrong:\n{}", wrong.len(), wrong.join("\n"))]
    Calibration {
        /// Each of them, in words.
        wrong: Vec<String>,
    },
    /// The packets that a machine has written are gone.
    #[error("cannot read {}: {source}", path.display())]
    Capture {
        /// The machine's own capture file.
        path: PathBuf,
        /// What the host said.
        source: std::io::Error,
    },
    /// A program that was built is gone.
    #[error("cannot read {}: {source}", path.display())]
    Program {
        /// The program's file.
        path: PathBuf,
        /// What the host said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
}

impl Error {
    /// What the command exits with: 2 if the parameters ask for something impossible, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Image(images::Error::Manifest { .. } | images::Error::UnknownManifest { .. })
            | Self::Machine(_)
            | Self::Network(_) => 2,
            _ => 1,
        }
    }
}
