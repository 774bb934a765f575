//! An invocation as a value: for a system call now, or for a ring that carries it out later (`libipc::syscall_ring`).

use super::{CPtr, Error, Result};
use crate::ipc_buffer;
use crate::syscall::{self, Registers};
use abi::message::{MessageInfo, REGISTERS};

/// An invocation with `N` message words and `C` extra capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing is invoked yet"]
pub struct Request<const N: usize, const C: usize> {
    /// The invoked capability.
    pub target: CPtr,
    /// Label, in the numbering of SMP kernels.
    pub label: u64,
    /// MR0 and the following.
    pub args: [u64; N],
    /// Extra capabilities.
    pub caps: [CPtr; C],
}

impl<const N: usize, const C: usize> Request<N, C> {
    /// Invokes by a system call; gives MR0..MR3 of the reply.
    ///
    /// # Errors
    /// What the kernel refuses.
    #[inline(always)] // the arguments are built in registers
    pub fn call(self) -> Result<Registers> {
        let Self { target, label, args, caps } = self;
        caps.iter().enumerate().for_each(|(index, &capability)| ipc_buffer::set_cap(index, capability));
        args.iter().enumerate().skip(REGISTERS).for_each(|(index, &word)| ipc_buffer::set_message_word(index, word));
        let mut words = [0; REGISTERS];
        words.iter_mut().zip(args).for_each(|(register, word)| *register = word);
        let reply = syscall::call(target, MessageInfo::new(label, 0, C, N), words);
        Error::check(reply.info.label(), reply.words)
    }
}
