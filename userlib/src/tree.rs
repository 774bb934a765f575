//! Reading properties of device trees: numbers, pairs of numbers, strings, with the property's name in the error.

use core::fmt;
use dtoolkit::fdt::FdtNode;
use dtoolkit::{FromPropertyValue, Node, Property};

/// A property that is missing or has a wrong form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no valid `{}` in the device tree", self.0)
    }
}

impl core::error::Error for Malformed {}

/// A property as a value of any type that the parser knows.
///
/// # Errors
/// If it is missing or has another form. So do the functions below.
pub fn value<'a, T: FromPropertyValue<'a>>(node: &FdtNode<'a>, name: &'static str) -> Result<T, Malformed> {
    node.property(name).and_then(|property| property.value_as().ok()).ok_or(Malformed(name))
}

/// A string.
pub fn text<'a>(node: &FdtNode<'a>, name: &'static str) -> Result<&'a str, Malformed> {
    value(node, name)
}

/// A number of one cell.
pub fn number<T: TryFrom<u32>>(node: &FdtNode<'_>, name: &'static str) -> Result<T, Malformed> {
    value::<u32>(node, name)?.try_into().map_err(|_| Malformed(name))
}

/// A number of two cells.
pub fn long(node: &FdtNode<'_>, name: &'static str) -> Result<u64, Malformed> {
    value(node, name)
}

/// Two numbers of two cells each: a start and a size.
pub fn pair(node: &FdtNode<'_>, name: &'static str) -> Result<[u64; 2], Malformed> {
    let [a, b, c, d] = value::<[u32; 4]>(node, name)?;
    Ok([u64::from(a) << 32 | u64::from(b), u64::from(c) << 32 | u64::from(d)])
}

/// Whether a property is there.
pub fn flag(node: &FdtNode<'_>, name: &str) -> bool {
    node.property(name).is_some()
}

/// A list of one-cell numbers; empty if the property is missing.
pub fn numbers<'a>(node: &FdtNode<'a>, name: &'static str) -> impl Iterator<Item = u32> + 'a {
    let bytes: &'a [u8] = value(node, name).unwrap_or_default();
    bytes.as_chunks::<4>().0.iter().map(|chunk| u32::from_be_bytes(*chunk))
}
