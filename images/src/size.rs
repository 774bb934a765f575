//! Sizes as manifests write them: bytes, or a number with K, M or G.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;
use std::str::FromStr;

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a size; write bytes or a number with K, M or G, such as \"64K\"");
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'K') => (&text[..text.len() - 1], 10),
            Some(b'M') => (&text[..text.len() - 1], 20),
            Some(b'G') => (&text[..text.len() - 1], 30),
            _ => (text, 0),
        };
        let number: u64 = digits.parse().map_err(|_| refuse())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(refuse)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0"),
            bytes if bytes % (1 << 30) == 0 => write!(f, "{}G", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => write!(f, "{}M", bytes >> 20),
            bytes if bytes % (1 << 10) == 0 => write!(f, "{}K", bytes >> 10),
            bytes => write!(f, "{bytes}"),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "a size such as \"64K\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes).map(Size).map_err(|_| E::custom("a size cannot be negative"))
            }
        }
        deserializer.deserialize_any(Words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("4096", 4096), ("64K", 64 << 10), ("128M", 128 << 20), ("2G", 2 << 30)] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
        }
        assert_eq!(Size(64 << 10).to_string(), "64K");
        assert_eq!(Size(4097).to_string(), "4097");
        for text in ["", "K", "1k", "-1", "1.5M", "99999999999G"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
