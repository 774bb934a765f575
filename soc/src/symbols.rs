//! Names for addresses: the function symbols of an image's programs, and backtrace markup turned into readable lines.
//!
//! Guests print `{{{bt:N:0xPC:PROGRAM}}}`; they have no symbols at run time. The image holds each program's unstripped ELF in
//! a section `.wakeline.elf.PROGRAM`, so the console can say which function that was.

use crate::elf::Executable;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prefix of the sections that hold programs.
pub const PROGRAM_SECTION_PREFIX: &str = ".wakeline.elf.";
/// Name under which a bare executable's own symbols are kept.
const SELF: &str = "program";
const OPEN: &str = "{{{bt:";
const CLOSE: &str = "}}}";

/// Function symbols by program.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Per program: start address to (size, demangled name).
    programs: BTreeMap<String, BTreeMap<u64, (u64, String)>>,
}

impl Symbols {
    /// The symbols of an image, or of a plain executable. Unreadable parts are left out: symbols are a convenience.
    pub fn of(image: &[u8]) -> Self {
        let mut symbols = Self::default();
        let Ok(executable) = Executable::parse(image) else { return symbols };
        for (name, content) in executable.sections_with_prefix(PROGRAM_SECTION_PREFIX) {
            if let Ok(program) = Executable::parse(content) {
                symbols.add(&name, &program);
            }
        }
        if symbols.programs.is_empty() {
            symbols.add(SELF, &executable);
        }
        symbols
    }

    fn add(&mut self, name: &str, executable: &Executable) {
        let functions = self.programs.entry(name.to_owned()).or_default();
        for (address, size, symbol) in executable.functions() {
            let pretty = format!("{:#}", rustc_demangle::demangle(&symbol));
            // Of several names for one address the one with a size is the function.
            let entry = functions.entry(address).or_insert((size, pretty.clone()));
            if entry.0 < size {
                *entry = (size, pretty);
            }
        }
    }

    /// Offset and name of the function at `pc` in `program`.
    fn find(&self, program: &str, pc: u64) -> Option<(u64, &str)> {
        let (start, (size, name)) = self.programs.get(program)?.range(..=pc).next_back()?;
        let offset = pc - start;
        (*size == 0 || offset <= *size).then_some((offset, name))
    }

    /// The name of the function around `pc` in `program`.
    pub(crate) fn name(&self, program: &str, pc: u64) -> Option<&str> {
        self.find(program, pc).map(|(_, name)| name)
    }

    /// The programs in which a function starts at `pc`.
    pub(crate) fn starting_at(&self, pc: u64) -> impl Iterator<Item = &str> {
        self.programs
            .iter()
            .filter(move |(_, functions)| functions.contains_key(&pc))
            .map(|(program, _)| program.as_str())
    }

    /// Where panics begin in the parts of an image that lie at the same address in every address space (kernel, firmware), and in a
    /// program that is alone: Rust's panic handler, or C's `panic`.
    pub(crate) fn panics(&self) -> impl Iterator<Item = u64> {
        let everywhere = ["kernel", "firmware", SELF].into_iter().filter_map(|name| self.programs.get(name));
        let is_panic = |name: &str| name == "panic" || name.ends_with("rust_begin_unwind");
        everywhere.flatten().filter(move |(_, (_, name))| is_panic(name)).map(|(&address, _)| address)
    }

    /// `function+0xoffset` of `pc` in `program`.
    pub fn function(&self, program: &str, pc: u64) -> Option<String> {
        self.find(program, pc).map(|(offset, name)| format!("{name}+{offset:#x}"))
    }

    /// The function at `pc` of the program where one starts nearest below: for addresses whose program is not known. (A label
    /// without size, as assembly code has them, reaches up to the next symbol, and the last one to the end of memory.)
    pub fn anywhere(&self, pc: u64) -> Option<String> {
        let found = self.programs.keys().filter_map(|program| Some((program, self.find(program, pc)?)));
        let (program, (offset, name)) = found.min_by_key(|(_, (offset, _))| *offset)?;
        Some(format!("{name}+{offset:#x} ({program})"))
    }

    /// `text` with every backtrace markup replaced by a line part `  #N 0xPC function+0xoff (PROGRAM)`.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(OPEN) {
            let (before, tail) = rest.split_at(start);
            out.push_str(before);
            let Some(end) = tail.find(CLOSE) else {
                rest = tail;
                break;
            };
            match self.frame(&tail[OPEN.len()..end]) {
                Some(line) => out.push_str(&line),
                None => out.push_str(&tail[..end + CLOSE.len()]),
            }
            rest = &tail[end + CLOSE.len()..];
        }
        out.push_str(rest);
        out
    }

    fn frame(&self, body: &str) -> Option<String> {
        let mut parts = body.splitn(3, ':');
        let number: u32 = parts.next()?.parse().ok()?;
        let pc = u64::from_str_radix(parts.next()?.strip_prefix("0x")?, 16).ok()?;
        let program = parts.next()?;
        // A return address points behind its call; look the call itself up.
        let at = if number == 0 { pc } else { pc.wrapping_sub(1) };
        let mut line = format!("  #{number} {pc:#x} ");
        match self.function(program, at) {
            Some(function) => line.push_str(&function),
            None => line.push_str("??"),
        }
        let _ = write!(line, " ({program})");
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let functions = [(0x1000, (0x20, "start".to_owned())), (0x2000, (0, "label".to_owned()))];
        Symbols { programs: [("kernel".to_owned(), functions.into())].into() }
    }

    #[test]
    fn panics_are_found_where_addresses_are_unique() {
        let functions = |functions: &[(u64, &str)]| {
            functions.iter().map(|&(address, name)| (address, (4, name.to_owned()))).collect::<BTreeMap<_, _>>()
        };
        let symbols = Symbols {
            programs: BTreeMap::from([
                ("kernel".to_owned(), functions(&[(16, "__rustc::rust_begin_unwind"), (32, "main")])),
                ("firmware".to_owned(), functions(&[(64, "panic"), (80, "panic_less")])),
                ("hello".to_owned(), functions(&[(128, "__rustc::rust_begin_unwind")])),
            ]),
        };
        assert_eq!(symbols.panics().collect::<Vec<_>>(), [16, 64]);
    }

    #[test]
    fn markup() {
        let s = symbols();
        assert_eq!(s.expand("a {{{bt:0:0x1004:kernel}}} b\n"), "a   #0 0x1004 start+0x4 (kernel) b\n");
        assert_eq!(s.expand("{{{bt:1:0x1020:kernel}}}"), "  #1 0x1020 start+0x1f (kernel)");
        assert_eq!(s.expand("{{{bt:0:0x1030:kernel}}}"), "  #0 0x1030 ?? (kernel)");
        assert_eq!(s.expand("{{{bt:0:0x1000:other}}}"), "  #0 0x1000 ?? (other)");
        for same in ["plain", "{{{bt:x:0x1:k}}}", "{{{bt:0:0x1", "{{{other}}}"] {
            assert_eq!(s.expand(same), same);
        }
    }

    #[test]
    fn anywhere() {
        assert_eq!(symbols().anywhere(0x1008).as_deref(), Some("start+0x8 (kernel)"));
        assert_eq!(symbols().anywhere(0xFFF), None);
    }
}
