//! Firmware and kernel: ELF files that are loaded at fixed physical addresses.

use crate::error::{Error, Result};
use object::LittleEndian as Le;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use std::fs;
use std::path::{Path, PathBuf};

/// A piece of physical memory.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Where it was read from.
    pub path: PathBuf,
    /// The whole ELF file.
    pub elf: Vec<u8>,
    /// Physical address.
    pub start: u64,
    /// Content; memory behind it up to `size` is zero.
    pub content: Vec<u8>,
    /// Bytes in memory.
    pub size: u64,
}

/// Largest blob that is believed.
const MAX_SIZE: u64 = 64 << 20;

impl Blob {
    /// Reads an ELF file and lays out its loadable segments by physical address.
    ///
    /// # Errors
    /// If the file cannot be read or is no complete RV64 executable.
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(path, fs::read(path).map_err(Error::io(path))?)
    }

    /// Lays out a file that was read from `path`.
    ///
    /// # Errors
    /// If it is no complete RV64 executable.
    pub fn parse(path: &Path, elf: Vec<u8>) -> Result<Self> {
        let (start, content, size) = layout(&elf).map_err(|reason| Error::Elf { path: path.into(), reason })?;
        Ok(Self { path: path.into(), elf, start, content, size })
    }
}

fn layout(elf: &[u8]) -> std::result::Result<(u64, Vec<u8>, u64), String> {
    let malformed = |_| String::from("the file is truncated or no ELF file");
    let header = FileHeader64::<Le>::parse(elf).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    if header.e_machine(endian) != elf::EM_RISCV {
        return Err("it is not for RISC-V".into());
    }
    let loads = header.program_headers(endian, elf).map_err(malformed)?.iter();
    let loads: Vec<_> = loads.filter(|load| load.p_type(endian) == elf::PT_LOAD && load.p_memsz(endian) > 0).collect();
    let start = loads.iter().map(|load| load.p_paddr(endian)).min().ok_or("it has nothing to load")?;
    let end =
        loads.iter().filter_map(|load| load.p_paddr(endian).checked_add(load.p_memsz(endian))).max().unwrap_or(start);
    if end - start > MAX_SIZE {
        return Err("its segments are too far apart".into());
    }
    let mut content = vec![0; (end - start) as usize];
    let mut used = 0;
    for load in loads {
        let bytes = load
            .data(endian, elf)
            .map_err(|()| String::from("the file is truncated: a segment lies behind its end"))?;
        let at = (load.p_paddr(endian) - start) as usize;
        let place = content.get_mut(at..at + bytes.len()).ok_or("a segment is larger in the file than in memory")?;
        place.copy_from_slice(bytes);
        used = used.max(at + bytes.len());
    }
    content.truncate(used);
    Ok((start, content, end - start))
}
