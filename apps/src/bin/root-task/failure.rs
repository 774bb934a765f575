//! Why the system could not be built.

use alloc::boxed::Box;
use core::fmt;
use userlib::cap;
use userlib::tree::Malformed;

/// Result of a step.
pub type Result<T> = core::result::Result<T, Failure>;

/// A step that failed.
pub enum Failure {
    /// The kernel refused an invocation.
    Kernel(&'static str, cap::Error),
    /// A property of a device tree is missing.
    Tree(Malformed),
    /// The boot archive lacks this, or it is damaged.
    Archive(&'static str),
    /// The machine has no such device, or its registers belong to somebody else.
    Device(&'static str),
    /// The machine has fewer harts: the number asked for, and how many there are.
    Hart(u64, u32),
    /// No capability slot is left.
    Slots,
    /// No untyped memory of 2^n bytes is left.
    Memory(usize),
    /// A step for this program or channel.
    For(&'static str, Box<Failure>),
}

impl Failure {
    /// Says for which program or channel.
    pub fn of(self, name: &'static str) -> Self {
        Self::For(name, Box::new(self))
    }
}

/// Names the step of a refused invocation.
pub trait Step<T> {
    /// `step` is a verb and its object: "mapping a stack".
    fn step(self, step: &'static str) -> Result<T>;
}

impl<T> Step<T> for cap::Result<T> {
    fn step(self, step: &'static str) -> Result<T> {
        self.map_err(|error| Failure::Kernel(step, error))
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Tree(malformed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(step, error) => write!(f, "{step}: {error}"),
            Self::Tree(malformed) => write!(f, "{malformed}"),
            Self::Archive(what) => write!(f, "the boot archive has no usable {what}"),
            Self::Device(what) => write!(f, "this machine has no free `{what}`"),
            Self::Hart(hart, harts) => write!(f, "hart {hart} does not exist, the kernel runs on {harts}"),
            Self::Slots => write!(f, "no capability slot is left"),
            Self::Memory(bits) => write!(f, "no untyped memory of 2^{bits} bytes is left"),
            Self::For(name, failure) => write!(f, "{name}: {failure}"),
        }
    }
}
