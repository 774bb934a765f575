//! Reading an executable: checks first, then the segments to load and the symbols that the machine cares about.

use crate::board::RAM_BASE;
use crate::error::SocError;
use object::elf::{EM_RISCV, ET_DYN, ET_EXEC, FileHeader64, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

/// A checked executable.
pub struct Executable<'a> {
    file: ElfFile64<'a, Endianness>,
    data: &'a [u8],
}

/// Bytes for RAM.
pub struct Segment<'a> {
    /// Physical address.
    pub address: u64,
    /// What the file holds.
    pub bytes: &'a [u8],
    /// Size in memory; what exceeds the bytes is zero.
    pub size: u64,
}

impl<'a> Executable<'a> {
    /// Checks that `data` is a 64-bit little-endian RISC-V executable.
    pub fn parse(data: &'a [u8]) -> Result<Self, SocError> {
        let not_elf = |reason: &str| SocError::NotElf { reason: reason.to_owned() };
        if data.len() < 20 || !data.starts_with(b"\x7fELF") {
            return Err(not_elf("no ELF header"));
        }
        let wrong = |found: String| Err(SocError::WrongMachine { found });
        if data[4] != 2 {
            return wrong("32-bit".to_owned());
        }
        if data[5] != 1 {
            return wrong("big-endian".to_owned());
        }
        let machine = u16::from_le_bytes([data[18], data[19]]);
        if machine != EM_RISCV.0 {
            return wrong(format!("machine number {machine}"));
        }
        let file = ElfFile64::parse(data).map_err(|error| not_elf(&error.to_string()))?;
        let header: &FileHeader64<Endianness> = file.elf_header();
        if !matches!(header.e_type(Endianness::Little), ET_EXEC | ET_DYN) {
            return Err(not_elf("an object file, not an executable"));
        }
        Ok(Self { file, data })
    }

    /// Where execution starts.
    pub fn entry(&self) -> u64 {
        self.file.entry()
    }

    /// The segments to load, in file order.
    pub fn segments(&self) -> Result<Vec<Segment<'a>>, SocError> {
        let endian = Endianness::Little;
        let mut segments = Vec::new();
        for header in self.file.elf_program_headers() {
            if header.p_type(endian) != PT_LOAD || header.p_memsz(endian) == 0 {
                continue;
            }
            let bytes = header
                .data(endian, self.data)
                .map_err(|()| SocError::NotElf { reason: "a segment lies outside the file; it is truncated".into() })?;
            let size = header.p_memsz(endian);
            if (bytes.len() as u64) > size {
                return Err(SocError::NotElf { reason: "a segment is larger in the file than in memory".into() });
            }
            segments.push(Segment { address: header.p_paddr(endian), bytes, size });
        }
        if segments.is_empty() {
            return Err(SocError::NothingToLoad);
        }
        Ok(segments)
    }

    /// Value of the symbol `name`.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
    }

    /// Content of the section `name`.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.file.section_by_name(name)?.data().ok()
    }

    /// All sections whose name starts with `prefix`: the rest of the name, and the content.
    pub fn sections_with_prefix(&self, prefix: &str) -> Vec<(String, &'a [u8])> {
        self.file
            .sections()
            .filter_map(|section| {
                let rest = section.name().ok()?.strip_prefix(prefix)?.to_owned();
                Some((rest, section.data().ok()?))
            })
            .collect()
    }

    /// Function symbols: address, size, name as in the file.
    pub fn functions(&self) -> Vec<(u64, u64, String)> {
        self.file
            .symbols()
            .filter(|symbol| {
                matches!(
                    symbol.kind(),
                    object::SymbolKind::Text | object::SymbolKind::Label | object::SymbolKind::Unknown
                ) && symbol.is_definition()
            })
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .filter(|(_, _, name)| !name.is_empty() && !name.starts_with('$') && !name.starts_with(".L"))
            .collect()
    }
}

/// Checks that every segment lies in RAM of `memory_bytes`; gives the end of the highest one.
pub fn check_fit(segments: &[Segment], memory_bytes: u64) -> Result<u64, SocError> {
    let ram_end = RAM_BASE + memory_bytes;
    let mut highest = RAM_BASE;
    for segment in segments {
        let end = segment.address.saturating_add(segment.size);
        if segment.address < RAM_BASE || end > ram_end {
            return Err(SocError::SegmentOutside { start: segment.address, end, ram_start: RAM_BASE, ram_end });
        }
        highest = highest.max(end);
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_files_are_refused_by_kind() {
        let header = |class: u8, data: u8, machine: u8| {
            let mut bytes = vec![0x7f, b'E', b'L', b'F', class, data, 1];
            bytes.resize(64, 0);
            bytes[18] = machine;
            bytes
        };
        assert!(matches!(Executable::parse(b"#!/bin/sh"), Err(SocError::NotElf { .. })));
        assert!(matches!(Executable::parse(b""), Err(SocError::NotElf { .. })));
        assert!(matches!(Executable::parse(&header(1, 1, 243)), Err(SocError::WrongMachine { .. })));
        assert!(matches!(Executable::parse(&header(2, 2, 243)), Err(SocError::WrongMachine { .. })));
        assert!(matches!(Executable::parse(&header(2, 1, 62)), Err(SocError::WrongMachine { .. })));
        assert!(Executable::parse(&header(2, 1, 243)[..40]).is_err());
    }

    #[test]
    fn segments_must_fit() {
        let segment = |address, size| Segment { address, bytes: &[], size };
        assert!(check_fit(&[segment(RAM_BASE, 4096)], 4096).is_ok());
        for bad in [segment(0, 1), segment(RAM_BASE, 4097), segment(u64::MAX, 2)] {
            assert!(matches!(check_fit(&[bad], 4096), Err(SocError::SegmentOutside { .. })));
        }
    }
}
