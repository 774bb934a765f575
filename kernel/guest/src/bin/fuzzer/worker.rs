//! A worker: random system calls for ever, from a page of its own. Its code uses no variable of the program.

use abi::ipc_buffer;
use abi::label::Table;
use kernel_guest::trap::system_call;

use crate::random::Random;
use crate::request;

/// Bytes between the pages of two workers, in both address spaces.
pub const STRIDE: u64 = 0x1_0000;
/// Where the workers' pages are, in their address space: buffer, state, stack.
pub const PAGES: u64 = 0x5000_0000;
/// Offset of the page with the state.
pub const STATE: u64 = 0x1000;
/// Offset of the page with the stack.
pub const STACK: u64 = 0x2000;

/// What the supervisor sets and reads.
#[repr(C)]
pub struct State {
    /// The generator.
    pub random: u64,
    /// Seed of the whole run.
    pub seed: u64,
    /// Calls made in this round.
    pub calls: u64,
    /// Numbering of the invocations.
    pub labels: u64,
}

/// First function of a worker, with its state, whose page lies behind that of its IPC buffer.
pub extern "C" fn work(state: *mut State) -> ! {
    let buffer = (state as u64 - STATE) as *mut u64;
    // SAFETY: the supervisor mapped the page for this worker; it reads `calls` alone, which is written as a whole.
    let State { random, seed, mut calls, labels } = unsafe { state.read_volatile() };
    let labels = Table::from_word(labels as u32);
    let mut random = Random(random);
    loop {
        let request = request::next(&mut random, labels);
        let put = |index: usize, value: u64| {
            // SAFETY: indices are below `ipc_buffer::WORDS`; the page is mapped and this worker's own.
            unsafe { buffer.wrapping_add(index).write_volatile(value) }
        };
        request.words.iter().enumerate().for_each(|(index, &word)| put(ipc_buffer::MESSAGE + index, word));
        request.caps.iter().enumerate().for_each(|(index, &cap)| put(ipc_buffer::CAPS_OR_BADGES + index, cap));
        put(ipc_buffer::RECEIVE_CNODE, request.receive[0]);
        put(ipc_buffer::RECEIVE_INDEX, request.receive[1]);
        put(ipc_buffer::RECEIVE_DEPTH, request.receive[2]);
        calls += 1;
        // SAFETY: above. A worker that is started again goes on with new numbers.
        unsafe {
            (&raw mut (*state).random).write_volatile(random.0);
            (&raw mut (*state).calls).write_volatile(calls);
        }
        system_call(request.registers, seed, calls);
    }
}
