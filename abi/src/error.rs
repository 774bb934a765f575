//! Error codes of invocations and the encoding of lookup failures.

/// `seL4_Error`: the label of the kernel's reply to a failing invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Error {
    /// MR0 = number of the argument.
    InvalidArgument = 1,
    /// MR0 = number of the capability: 0 the invoked one, from 1 the extra ones.
    InvalidCapability = 2,
    /// The operation is not allowed on this object or in this state.
    IllegalOperation = 3,
    /// MR0 = least, MR1 = greatest value allowed.
    RangeError = 4,
    /// An address is not aligned.
    AlignmentError = 5,
    /// MR0 = 1 if the source lookup failed; MR1.. = lookup failure.
    FailedLookup = 6,
    /// Fewer words or capabilities than the operation needs.
    TruncatedMessage = 7,
    /// The destination slot is in use.
    DeleteFirst = 8,
    /// The object has children.
    RevokeFirst = 9,
    /// MR0 = bytes left in the untyped.
    NotEnoughMemory = 10,
}

/// Number of error codes including `seL4_NoError`.
pub const COUNT: u64 = 11;

impl Error {
    /// From the label of a reply; `None` for 0 (no error) and unknown codes.
    pub const fn from_label(label: u64) -> Option<Self> {
        Some(match label {
            1 => Self::InvalidArgument,
            2 => Self::InvalidCapability,
            3 => Self::IllegalOperation,
            4 => Self::RangeError,
            5 => Self::AlignmentError,
            6 => Self::FailedLookup,
            7 => Self::TruncatedMessage,
            8 => Self::DeleteFirst,
            9 => Self::RevokeFirst,
            10 => Self::NotEnoughMemory,
            _ => return None,
        })
    }
}

/// Why a capability lookup stopped (`seL4_LookupFailureType`, manual section "Lookup Failure").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupFailure {
    /// The root is not a CNode; also: ASID or VSpace not found.
    InvalidRoot,
    /// The slot is empty.
    MissingCapability {
        /// Depth of the operation, or 0.
        bits_left: u64,
    },
    /// A CNode resolves more bits than are left, or bits are left on a capability that is no CNode.
    DepthMismatch {
        /// Bits still to resolve.
        bits_left: u64,
        /// Bits that the CNode would resolve, or 0.
        bits_found: u64,
    },
    /// The guard differs.
    GuardMismatch {
        /// Bits still to resolve.
        bits_left: u64,
        /// Guard of the CNode.
        guard_found: u64,
        /// Size of that guard in bits.
        bits_found: u64,
    },
}

impl LookupFailure {
    /// The message words (type first) and how many of them count.
    pub const fn words(self) -> ([u64; 4], usize) {
        match self {
            Self::InvalidRoot => ([1, 0, 0, 0], 1),
            Self::MissingCapability { bits_left } => ([2, bits_left, 0, 0], 2),
            Self::DepthMismatch { bits_left, bits_found } => ([3, bits_left, bits_found, 0], 3),
            Self::GuardMismatch { bits_left, guard_found, bits_found } => ([4, bits_left, guard_found, bits_found], 4),
        }
    }
}
