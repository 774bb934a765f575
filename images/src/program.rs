//! Guest ELF files: what is in them, checked, and what of them goes into an image.

use crate::error::{Error, Result};
use crate::plan::{MEGA_PAGE, PAGE, PRIVATE, PRIVATE_DATA, Range};
use object::LittleEndian as Le;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of an ELF header, and offset and size of its words about sections (ELF-64 specification: e_shoff, e_shentsize..e_shstrndx).
const SECTION_OFFSET: std::ops::Range<usize> = 40..48;
const SECTION_COUNTS: std::ops::Range<usize> = 58..64;

/// Most bytes from the first to the last address of a program.
const MAX_SPAN: u64 = 1 << 30;

/// A guest program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it was read from.
    pub path: PathBuf,
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Entry address.
    pub entry: u64,
    /// Loadable segments by ascending address, page by page disjoint.
    pub segments: Vec<Segment>,
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its addresses.
    pub memory: Range,
    /// Its bytes in the file; the rest of its memory is zero.
    pub file: Range,
    /// It may be written.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
}

impl Segment {
    fn end(&self) -> u64 {
        self.memory.start + self.memory.size
    }
}

impl Program {
    /// Reads and checks a program.
    ///
    /// # Errors
    /// If the file cannot be read or [`Program::parse`] refuses it.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::io(path))?;
        Self::parse(path, bytes)
    }

    /// Checks a program.
    ///
    /// # Errors
    /// If it is not a complete, statically linked RV64 executable whose segments have pages of their own.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let program = Self::parse_foreign(path, bytes)?;
        separate(&program.segments).map_err(|reason| Error::Elf { path: path.into(), reason })?;
        Ok(program)
    }

    /// Reads and checks a root task that is mapped as a whole with all rights, as seL4 does it: its segments may share pages.
    ///
    /// # Errors
    /// If the file cannot be read or [`Program::parse_foreign`] refuses it.
    pub fn load_foreign(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::io(path))?;
        Self::parse_foreign(path, bytes)
    }

    /// Checks a root task that is mapped as a whole.
    ///
    /// # Errors
    /// If it is not a complete, statically linked RV64 executable whose segments do not overlap.
    pub fn parse_foreign(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let (entry, segments) = segments(&bytes).map_err(|reason| Error::Elf { path: path.into(), reason })?;
        Ok(Self { path: path.into(), bytes, entry, segments })
    }

    /// Lowest address, rounded down to a page.
    pub fn start(&self) -> u64 {
        self.segments[0].memory.start / PAGE * PAGE
    }

    /// First address after the program.
    pub fn end(&self) -> u64 {
        self.segments[self.segments.len() - 1].end()
    }

    /// Pages that its segments fill.
    pub fn pages(&self) -> u64 {
        self.segments.iter().map(|segment| segment.end().div_ceil(PAGE) - segment.memory.start / PAGE).sum()
    }

    /// Whether 2 MiB pages can map its code, and nothing but its data lies in the private page (`userlib/program.ld`).
    pub fn allows_large_pages(&self) -> bool {
        let place = |segment: &Segment| segment.memory.rounded(if segment.execute { MEGA_PAGE } else { PAGE });
        let apart = self.segments.windows(2).all(|pair| !place(&pair[0]).meets(place(&pair[1])));
        let private = |segment: &Segment| match segment.write {
            true => PRIVATE_DATA.contains(segment.memory),
            false => !place(segment).meets(PRIVATE),
        };
        apart && self.segments.iter().all(private)
    }

    /// Its memory from [`Program::start`] to [`Program::end`].
    pub fn memory(&self) -> Vec<u8> {
        let mut memory = vec![0; (self.end() - self.start()) as usize];
        for segment in &self.segments {
            let at = (segment.memory.start - self.start()) as usize;
            let file = &self.bytes[segment.file.start as usize..][..segment.file.size as usize];
            memory[at..at + file.len()].copy_from_slice(file);
        }
        memory
    }

    /// The file without sections and symbols: headers and segments stay where they are.
    pub fn stripped(&self) -> Vec<u8> {
        let end = self.segments.iter().map(|segment| segment.file.start + segment.file.size).max().unwrap_or(0);
        let mut bytes = self.bytes[..end as usize].to_vec();
        bytes[SECTION_OFFSET].fill(0);
        bytes[SECTION_COUNTS].fill(0);
        bytes
    }

    /// Address of a symbol.
    ///
    /// # Errors
    /// If the program has no such symbol.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        use object::{Object, ObjectSymbol};
        let refuse = |reason: String| Error::Elf { path: self.path.clone(), reason };
        let file = object::File::parse(&*self.bytes).map_err(|error| refuse(error.to_string()))?;
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
        symbol.map(|symbol| symbol.address()).ok_or_else(|| refuse(format!("it has no symbol `{name}`")))
    }
}

fn segments(bytes: &[u8]) -> std::result::Result<(u64, Vec<Segment>), String> {
    let malformed = |_| String::from("the file is truncated or no ELF file");
    let header = FileHeader64::<Le>::parse(bytes).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    require(header.e_machine(endian) == elf::EM_RISCV, "it is not for RISC-V")?;
    require(header.e_type(endian) == elf::ET_EXEC, "it is not a statically linked executable")?;
    let headers = header.program_headers(endian, bytes).map_err(malformed)?;
    let mut segments = headers
        .iter()
        .filter(|header| header.p_type(endian) == elf::PT_LOAD && header.p_memsz(endian) > 0)
        .map(|header| segment(header, bytes))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    segments.sort_by_key(|segment| segment.memory.start);
    require(!segments.is_empty(), "it has nothing to load")?;
    require(segments.windows(2).all(|pair| pair[0].end() <= pair[1].memory.start), "two of its segments overlap")?;
    let span = segments[segments.len() - 1].end() - segments[0].memory.start;
    require(span <= MAX_SPAN, "its segments lie more than 1 GiB apart")?;
    let entry = header.e_entry(endian);
    let inside = |segment: &Segment| segment.execute && (segment.memory.start..segment.end()).contains(&entry);
    require(segments.iter().any(inside), "its entry is not in executable memory")?;
    Ok((entry, segments))
}

/// Segments that each have rights of their own, none both to write and to execute.
fn separate(segments: &[Segment]) -> std::result::Result<(), String> {
    let apart = |pair: &[Segment]| pair[0].end().div_ceil(PAGE) <= pair[1].memory.start / PAGE;
    require(segments.windows(2).all(apart), "two of its segments share a page, so their rights cannot differ")?;
    let either = |segment: &Segment| !(segment.write && segment.execute);
    require(segments.iter().all(either), "a segment is both writable and executable")
}

fn segment(header: &ProgramHeader64<Le>, bytes: &[u8]) -> std::result::Result<Segment, String> {
    let memory = Range { start: header.p_vaddr(Le), size: header.p_memsz(Le) };
    let file = Range { start: header.p_offset(Le), size: header.p_filesz(Le) };
    let end = file.start.checked_add(file.size);
    require(end.is_some_and(|end| end <= bytes.len() as u64), "the file is truncated: a segment lies behind its end")?;
    require(file.size <= memory.size, "a segment is larger in the file than in memory")?;
    require(memory.start.checked_add(memory.size).is_some(), "a segment wraps around the address space")?;
    let flags = header.p_flags(Le);
    let (write, execute) = (flags & elf::PF_W == elf::PF_W, flags & elf::PF_X == elf::PF_X);
    Ok(Segment { memory, file, write, execute })
}

fn require(condition: bool, reason: &str) -> std::result::Result<(), String> {
    if condition { Ok(()) } else { Err(reason.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Load, code, elf as sample};

    fn parse(bytes: Vec<u8>) -> std::result::Result<Program, String> {
        Program::parse(Path::new("guest"), bytes).map_err(|error| error.to_string())
    }

    /// Code at 0x1_0100 and data at 0x1_2800, which grows from 8 bytes to a page.
    fn good() -> Vec<u8> {
        let data = Load { size: 4096, flags: elf::PF_R | elf::PF_W, ..code(0x1_2800, vec![7; 8]) };
        sample(0x1_0100, &[code(0x1_0100, vec![1; 100]), data])
    }

    #[test]
    fn a_program_is_laid_out_and_stripped() {
        let program = parse(good()).unwrap();
        assert_eq!((program.start(), program.end(), program.pages()), (0x1_0000, 0x1_3800, 3));
        let memory = program.memory();
        assert_eq!((memory.len(), memory[0xFF], memory[0x100], memory[0x2807], memory[0x2808]), (0x3800, 0, 1, 7, 0));
        assert!(program.segments[1].write && !program.segments[1].execute);

        let stripped = parse(program.stripped()).unwrap();
        assert_eq!((stripped.memory(), stripped.segments), (memory, program.segments));
    }

    #[test]
    fn large_pages_need_the_layout_of_programs() {
        let data = |start| Load { flags: elf::PF_R | elf::PF_W, ..code(start, vec![7; 8]) };
        let constants = |start| Load { flags: elf::PF_R, ..code(start, vec![3; 8]) };
        let allows = |loads: &[Load]| parse(sample(0x120_0000, loads)).unwrap().allows_large_pages();
        let text = || code(0x120_0000, vec![1; 100]);
        assert!(allows(&[constants(0x101_0000), text(), data(0x148_0000)]));
        assert!(allows(&[text()]));
        assert!(!allows(&[constants(0x121_0000), text()]), "constants in a page of code");
        assert!(!allows(&[text(), data(0x13f_f000)]), "data in a page of code");
        assert!(!allows(&[text(), data(0x147_f000)]), "data in the room of the stack");
        assert!(!allows(&[text(), constants(0x140_0000)]), "constants in the private page");
        assert!(!parse(good()).unwrap().allows_large_pages(), "the linker's own layout");
    }

    #[test]
    fn unusable_files_are_refused_with_a_reason() {
        let whole = good();
        let cases = [
            (Vec::new(), "the file is truncated or no ELF file"),
            (b"#!/bin/sh\n".to_vec(), "the file is truncated or no ELF file"),
            (whole[..40].to_vec(), "the file is truncated or no ELF file"),
            (whole[..whole.len() - 1].to_vec(), "the file is truncated: a segment lies behind its end"),
            (sample(0, &[]), "it has nothing to load"),
            (sample(0x2_0000, &[code(0x1_0000, vec![0; 4])]), "its entry is not in executable memory"),
            (
                sample(0x1_0000, &[code(0x1_0000, vec![0; 4]), code(0x1_0800, vec![0; 4])]),
                "two of its segments share a page",
            ),
            (
                sample(0x1_0000, &[code(0x1_0000, vec![0; 4]), code(0x1_0002, vec![0; 4])]),
                "two of its segments overlap",
            ),
            (
                sample(0x1_0000, &[code(0x1_0000, vec![0; 4]), code(1 << 31, vec![0; 4])]),
                "its segments lie more than 1 GiB apart",
            ),
            (sample(0, &[Load { size: 2, ..code(0, vec![0; 4]) }]), "a segment is larger in the file than in memory"),
            (
                sample(0, &[Load { size: u64::MAX, ..code(4096, vec![0; 4]) }]),
                "a segment wraps around the address space",
            ),
            (
                sample(0, &[Load { flags: elf::PF_R | elf::PF_W | elf::PF_X, ..code(0, vec![0; 4]) }]),
                "a segment is both writable and executable",
            ),
        ];
        for (bytes, expected) in cases {
            let said = parse(bytes).unwrap_err();
            assert!(
                said.starts_with("guest: not a usable guest program: ") && said.contains(expected),
                "{said} / {expected}"
            );
        }
        for (bytes, pages) in [
            (sample(0x1_0000, &[code(0x1_0000, vec![1; 4]), code(0x1_0800, vec![2; 4])]), 1),
            (sample(0, &[Load { flags: elf::PF_R | elf::PF_W | elf::PF_X, ..code(0, vec![0; 4]) }]), 1),
        ] {
            let program = Program::parse_foreign(Path::new("root"), bytes).expect("mapped as a whole");
            assert_eq!(program.end().div_ceil(PAGE) - program.start() / PAGE, pages);
        }
        let mut foreign = whole;
        foreign[18] = 62;
        assert!(parse(foreign).unwrap_err().contains("it is not for RISC-V"));
    }
}
