//! What can be wrong with a manifest, a guest program or an image. One line each: where, what, and what to do.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No manifest of this name.
    #[error("there is no manifest `{name}`; there are: {known}")]
    UnknownManifest {
        /// What was asked for.
        name: String,
        /// The manifests in `images/`, by name.
        known: String,
    },
    /// A manifest that says something impossible.
    #[error("{place}: {message}")]
    Manifest {
        /// `file:line: key`, as far as known.
        place: String,
        /// What is wrong and what would be right.
        message: String,
    },
    /// The packages of the workspace could not be listed.
    #[error("cargo metadata failed: {0}")]
    Metadata(String),
    /// A guest program does not compile; cargo has said why.
    #[error("building the guest programs failed ({0}); cargo's messages are above")]
    GuestBuild(String),
    /// A file that is no usable guest program.
    #[error("{}: not a usable guest program: {reason}", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The parts do not fit together.
    #[error("{0}")]
    DoesNotFit(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err` on file operations.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
