//! A file of the host as a disk: whole sectors, bounds checked before the file is touched.

use crate::error::SocError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// Bytes of a sector.
pub const SECTOR_BYTES: u64 = 512;

/// A disk as a command line names it: `FILE` or `FILE,ro`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpec {
    /// The file; its size is the disk's.
    pub path: PathBuf,
    /// The guest must not write, and the file is opened for reading only.
    pub read_only: bool,
}

impl FromStr for DiskSpec {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, read_only) = text.strip_suffix(",ro").map_or((text, false), |path| (path, true));
        Ok(Self { path: PathBuf::from(path), read_only })
    }
}

/// An opened disk.
#[derive(Debug)]
pub struct Disk {
    file: File,
    path: PathBuf,
    sectors: u64,
    read_only: bool,
}

impl Disk {
    /// Opens the file. Error: [`SocError::Disk`] if it cannot be opened or is not whole sectors.
    pub fn open(spec: &DiskSpec) -> Result<Self, SocError> {
        let refuse = |reason: String| SocError::Disk { path: spec.path.display().to_string(), reason };
        let opened = OpenOptions::new().read(true).write(!spec.read_only).open(&spec.path);
        let file = opened.map_err(|error| refuse(format!("{error}: check the file, or add ,ro")))?;
        let bytes = file.metadata().map_err(|error| refuse(error.to_string()))?.len();
        if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(refuse(format!("{bytes} bytes are not whole sectors: make it a multiple of {SECTOR_BYTES}")));
        }
        Ok(Self { file, path: spec.path.clone(), sectors: bytes / SECTOR_BYTES, read_only: spec.read_only })
    }

    /// Number of sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The guest must not write.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// The file's path, for messages.
    pub fn name(&self) -> impl std::fmt::Display + '_ {
        self.path.display()
    }

    /// SHA-256 of the content, in hexadecimal. Error: [`SocError::Disk`], the host's.
    pub fn digest(&self) -> Result<String, SocError> {
        let refuse = |error: io::Error| SocError::Disk { path: self.name().to_string(), reason: error.to_string() };
        let (mut file, mut hash, mut chunk) = (&self.file, Sha256::new(), vec![0; 1 << 16]);
        file.seek(SeekFrom::Start(0)).map_err(refuse)?;
        loop {
            match file.read(&mut chunk).map_err(refuse)? {
                0 => break,
                bytes => hash.update(&chunk[..bytes]),
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Fills `buf`, whole sectors from `sector` on. Errors: beyond the end, or the host's.
    pub fn read(&mut self, sector: u64, buf: &mut [u8]) -> io::Result<()> {
        self.seek(sector, buf.len())?;
        self.file.read_exact(buf)
    }

    /// Writes whole sectors. Errors as [`Disk::read`], or the disk is read-only.
    pub fn write(&mut self, sector: u64, data: &[u8]) -> io::Result<()> {
        if self.read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.seek(sector, data.len())?;
        self.file.write_all(data)
    }

    /// Brings what was written to the medium.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn seek(&mut self, sector: u64, bytes: usize) -> io::Result<()> {
        let count = bytes as u64 / SECTOR_BYTES;
        if !(bytes as u64).is_multiple_of(SECTOR_BYTES)
            || sector.checked_add(count).is_none_or(|end| end > self.sectors)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.seek(SeekFrom::Start(sector * SECTOR_BYTES)).map(drop)
    }
}
