//! The boot archive: a CPIO archive behind this program, whose place the image builder wrote into `BOOT_ARCHIVE`.

use crate::failure::{Failure, Result};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Virtual address and size. Atomic because the compiler must not believe that the zeroes of the source stay.
#[unsafe(export_name = "WAKELINE_BOOT_ARCHIVE")]
static BOOT_ARCHIVE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// The content of a member.
pub fn member(name: impl Fn(&str) -> bool, what: &'static str) -> Result<&'static [u8]> {
    let [address, size] = [0, 1].map(|word| BOOT_ARCHIVE[word].load(Ordering::Relaxed));
    if address == 0 {
        return Err(Failure::Archive(what));
    }
    // SAFETY: the builder laid the archive out there, as a part of this program's image, which is mapped for ever and not written.
    let archive = unsafe { core::slice::from_raw_parts(address as *const u8, size) };
    let found = cpio_reader::iter_files(archive).find(|entry| name(entry.name()));
    found.map(|entry| entry.file()).ok_or(Failure::Archive(what))
}
