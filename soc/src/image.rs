//! What an image carries besides its segments: defaults for the machine (section `.wakeline.machine`, TOML).

use crate::config::parse_bytes;
use crate::elf::Executable;
use crate::error::SocError;
use serde::Deserialize;

/// Name of the section.
pub const MACHINE_SECTION: &str = ".wakeline.machine";

/// Defaults that the image's builder chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineDefaults {
    /// Number of harts.
    pub harts: Option<usize>,
    /// RAM in bytes.
    pub memory_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Section {
    harts: Option<usize>,
    memory: Option<String>,
}

impl MachineDefaults {
    /// Reads the defaults of an image; an executable without the section has none.
    pub fn of(image: &[u8]) -> Result<Self, SocError> {
        match Executable::parse(image)?.section(MACHINE_SECTION) {
            Some(text) => Self::parse(text),
            None => Ok(Self::default()),
        }
    }

    fn parse(text: &[u8]) -> Result<Self, SocError> {
        let bad = |reason: String| SocError::MachineSection { reason };
        let text = std::str::from_utf8(text).map_err(|_| bad("not text".into()))?;
        let section: Section = toml::from_str(text).map_err(|error| bad(error.message().to_owned()))?;
        let memory_bytes = section.memory.as_deref().map(parse_bytes).transpose()?;
        Ok(Self { harts: section.harts, memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section() {
        let read = MachineDefaults::parse(b"harts = 2\nmemory = \"64M\"\n").unwrap();
        assert_eq!(read, MachineDefaults { harts: Some(2), memory_bytes: Some(64 << 20) });
        assert!(MachineDefaults::parse(b"harts = \"two\"").is_err());
        assert!(MachineDefaults::parse(&[0xFF]).is_err());
    }
}
