//! Snapshots: a machine's whole state in a file, and a machine out of it.
//!
//! ```text
//!   magic, format, length of the text   8 + 4 + 8 bytes, numbers little-endian
//!   text                                JSON: configuration, harts, cost model, bus, devices, pending events
//!   pages                               per page that is not zero and unmarked: number, code mark, other marks, 4096 bytes
//!   SHA-256 of all before               32 bytes
//! ```
//!
//! What is saved is what the guest could see, what the cost model remembers, and the memos whose misses or marks can end a block or a turn
//! early: functional TLBs, and which pages are marked as decoded code or page tables. Decoded blocks are left out: they are found again
//! without a trace. So a restored machine runs on as the one that was saved would have, cycle by cycle.
//!
//! The far end of the wire is not saved but repeated: a peer is a function of what it was told and asked ([`crate::wire::Peer`]), the link
//! keeps that list when a snapshot is wanted, and the restored link tells a new peer the same. Peers that reach out of the
//! simulation cannot be repeated; a machine with one is not saved.
//!
//! Each part writes its own fields by name, so that a file of a build with other fields is refused by the field's name and not
//! misread. [`FORMAT`] moves when the same fields come to mean something else. The checksum tells damage, not malice: a file that was
//! forged together with its checksum may make the host's process end with a panic, as any wrong state of a device may.

mod state;

pub use state::State;
pub(crate) use state::array;

use crate::config::Config;
use crate::error::SocError;
use crate::machine::SavedMachine;
use crate::memory::{Memory, PAGE_BYTES};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"WKL-snap";
/// Version of the format.
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 8;
const DIGEST_BYTES: usize = 32;
/// Number, code mark and other marks of a page, before its bytes.
const PAGE_HEADER_BYTES: usize = 8 + 8 + 1;
const PAGE_RECORD_BYTES: usize = PAGE_HEADER_BYTES + PAGE_BYTES as usize;

/// A snapshot that has been read, and is ready to become a machine ([`crate::Machine::restore`]).
pub struct Snapshot<'f> {
    /// Of the machine that was saved. Limit and packet capture may be changed; anything else makes another machine of it.
    pub config: Config,
    pub(crate) machine: SavedMachine,
    pages: &'f [u8],
}

/// The text; written from borrowed parts and read to owned ones.
#[derive(Serialize, Deserialize)]
struct Text<C, M> {
    config: C,
    machine: M,
}

/// Writes a file. `machine` and `ram` are of one machine between two blocks.
pub(crate) fn write(config: &Config, machine: &SavedMachine, ram: &Memory) -> Result<Vec<u8>, SocError> {
    let text = State::of(&Text { config, machine })?.into_text();
    let mut file = MAGIC.to_vec();
    file.extend(FORMAT.to_le_bytes());
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
    for (number, page) in ram.pages().filter(|(_, page)| page.is_worth_saving()) {
        file.extend((number as u64).to_le_bytes());
        file.extend(page.code.to_le_bytes());
        file.push(page.marks);
        file.extend(page.bytes);
    }
    let digest = Sha256::digest(&file);
    file.extend(digest);
    Ok(file)
}

impl<'f> Snapshot<'f> {
    /// Reads a file. Error: [`SocError::Snapshot`] if it is none, of another version, cut off or damaged.
    pub fn read(file: &'f [u8]) -> Result<Self, SocError> {
        let refuse = |reason: &str| SocError::Snapshot { reason: reason.to_owned() };
        let damaged = || refuse("the file is cut off or damaged: copy it again, or run to that point again");
        let rest =
            file.strip_prefix(MAGIC).ok_or_else(|| refuse("not a snapshot: give a file of soc run --snapshot"))?;
        let (format, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        if u32::from_le_bytes(*format) != FORMAT {
            return Err(refuse("made by another version of soc: run to that point again with this one"));
        }
        let (length, _) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (body, digest) = file.split_last_chunk::<DIGEST_BYTES>().ok_or_else(damaged)?;
        if Sha256::digest(body).as_slice() != digest {
            return Err(damaged());
        }
        let body = body.get(HEADER_BYTES..).ok_or_else(damaged)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
        let (text, pages) = body.split_at_checked(length).ok_or_else(damaged)?;
        let text: Text<Config, SavedMachine> = serde_json::from_slice(text).map_err(|error| state::foreign(&error))?;
        let Text { config, machine } = text;
        config.check()?;
        if !pages.len().is_multiple_of(PAGE_RECORD_BYTES) || machine.harts() != config.harts {
            return Err(damaged());
        }
        Ok(Self { config, machine, pages })
    }

    /// Fills `ram`, which is new. Error: a page lies outside.
    pub(crate) fn fill(&self, ram: &mut Memory) -> Result<(), SocError> {
        for record in self.pages.chunks_exact(PAGE_RECORD_BYTES) {
            let word =
                |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes are eight bytes"));
            let page = Page { code: word(8), marks: record[16], bytes: &record[PAGE_HEADER_BYTES..] };
            if !ram.restore_page(word(0), &page) {
                return Err(SocError::Snapshot { reason: "a page lies outside RAM: the file was forged".to_owned() });
            }
        }
        Ok(())
    }
}

/// A page and its marks ([`crate::memory`]).
pub(crate) struct Page<'a> {
    pub code: u64,
    pub marks: u8,
    pub bytes: &'a [u8],
}

impl Page<'_> {
    fn is_worth_saving(&self) -> bool {
        self.code != 0 || self.marks != 0 || self.bytes.iter().any(|&byte| byte != 0)
    }
}
