//! The IPC buffer: 1024 bytes, 1024-aligned; offsets in 64-bit words.

/// `seL4_IPCBufferSizeBits`.
pub const SIZE_BITS: usize = 10;
/// The tag; neither read nor written by the kernel.
pub const TAG: usize = 0;
/// MR0; MR*i* is at `MESSAGE + i`. The kernel does not touch MR0..MR3 here.
pub const MESSAGE: usize = 1;
/// Free for the user.
pub const USER_DATA: usize = 121;
/// CPtrs on send, badges on receive: three words.
pub const CAPS_OR_BADGES: usize = 122;
/// CPtr of the CNode for received capabilities.
pub const RECEIVE_CNODE: usize = 125;
/// Index in it.
pub const RECEIVE_INDEX: usize = 126;
/// Depth for it, in bits.
pub const RECEIVE_DEPTH: usize = 127;
/// Words in the buffer.
pub const WORDS: usize = 128;

const _: () = assert!(WORDS * 8 == 1 << SIZE_BITS);
const _: () = assert!(CAPS_OR_BADGES * 8 == 976 && RECEIVE_DEPTH * 8 == 1016);
