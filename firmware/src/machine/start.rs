//! From the first instruction to S-mode: hart 0 reads the board and enters the kernel, the others wait to be started.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use firmware::board::{Board, MAX_HARTS};

use super::{hsm, trap};

/// The range that S and U cannot touch, and where S-mode code starts.
pub const FIRMWARE_BASE: usize = 0x8000_0000;
/// Two mebibytes: what firmware.ld allows and PMP closes.
pub const FIRMWARE_BYTES: usize = 2 << 20;
const KERNEL: usize = FIRMWARE_BASE + FIRMWARE_BYTES;

/// Deepest use is the panic printer, about 2 KiB.
const STACK_BYTES: usize = 16 << 10;

#[repr(C, align(4096))]
struct Stacks(UnsafeCell<[[u8; STACK_BYTES]; MAX_HARTS]>);
// SAFETY: each hart uses its own stack only, through sp.
unsafe impl Sync for Stacks {}
#[unsafe(link_section = ".stacks")]
static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK_BYTES]; MAX_HARTS]));

/// 1 once the board is read and .bss is clear. In .data, because the other harts look at it before .bss is clear.
#[unsafe(link_section = ".data")]
static READY: AtomicU32 = AtomicU32::new(0);

struct BoardCell(UnsafeCell<Option<Board>>);
// SAFETY: hart 0 writes once before the release store of `READY`; every other hart reads after it has seen it.
unsafe impl Sync for BoardCell {}
static BOARD: BoardCell = BoardCell(UnsafeCell::new(None));

global_asm!(
    include_str!("entry.S"),
    max_harts = const MAX_HARTS,
    stack_bytes = const STACK_BYTES,
    stacks = sym STACKS,
    ready = sym READY,
    boot_hart = sym boot_hart,
    other_hart = sym other_hart,
    trap = sym trap::trap,
);

/// The board. Must not be called before `boot_hart` has read it.
pub fn board() -> &'static Board {
    // SAFETY: written once, before any caller (see `BoardCell`).
    match unsafe { &*BOARD.0.get() } {
        Some(board) => board,
        None => super::finisher_less_halt(),
    }
}

/// The first address above the stack of `hart`.
pub fn stack_top(hart: usize) -> usize {
    STACKS.0.get() as usize + (hart + 1) * STACK_BYTES
}

/// Whether `len` bytes from `at` touch nothing of the firmware.
pub fn outside_firmware(at: usize, len: usize) -> bool {
    at.checked_add(len).is_some_and(|end| end <= FIRMWARE_BASE || at >= KERNEL)
}

extern "C" fn boot_hart(hart: usize, tree: usize) -> ! {
    match read_board(tree) {
        // SAFETY: no other hart reads the cell before `READY`.
        Some(board) => unsafe { *BOARD.0.get() = Some(board) },
        None => super::finisher_less_halt(),
    }
    READY.store(1, Ordering::Release);
    hsm::start_here(hart, KERNEL, tree)
}

extern "C" fn other_hart(hart: usize, _tree: usize) -> ! {
    hsm::wait(hart)
}

fn read_board(tree: usize) -> Option<Board> {
    /// First word of a flattened device tree, and the offset of its total size.
    const MAGIC: u32 = 0xd00d_feed;
    const MAX_BYTES: u32 = 2 << 20;
    if tree == 0 || !tree.is_multiple_of(8) {
        return None;
    }
    let header = tree as *const u32;
    // SAFETY: the machine's reset code passes the tree's address in a1; two aligned words are read first.
    let (magic, bytes) = unsafe { (u32::from_be(header.read()), u32::from_be(header.add(1).read())) };
    if magic != MAGIC || bytes > MAX_BYTES {
        return None;
    }
    // SAFETY: the header says that the tree has this many bytes; nothing writes to it.
    let tree = unsafe { core::slice::from_raw_parts(header.cast::<u8>(), bytes as usize) };
    Board::parse(tree).ok()
}
