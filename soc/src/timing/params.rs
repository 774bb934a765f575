//! Every constant of the cost model, each with its source.
//!
//! Sources: "M1" = cycle counts of generated Rocket RTL, one big core, 64-bit memory port, broadcast hub, no L2 (rocket-chip
//! 850e1d5d5, LiteX variant LitexFullConfig); "M4" = the same with four cores (LitexFull4DConfig); "S" = rocket-chip Scala,
//! file named; "U" = engineering estimate. All numbers are core cycles.

/// Bubbles before a dependent of `ld lw lwu`, `lr`, AMO (M1).
pub const LOAD_BUBBLES: u64 = 1;
/// Bubbles before a dependent of `lb lbu lh lhu`, `sc` (M1; S: fastLoadByte = false).
pub const NARROW_LOAD_BUBBLES: u64 = 2;
/// Bubbles before a dependent of an AMO with `aq` or `rl` (M1: 4 cycles for the AMO and its use).
pub const ORDERED_AMO_BUBBLES: u64 = 2;
/// Bubbles before a dependent of a CSR read (M1).
pub const CSR_READ_BUBBLES: u64 = 2;
/// A memory access that is replayed behind a pending store or read-modify-write (M1), and a store right behind one that missed
/// (M1 and M4: what a write stream costs beyond its misses).
pub const REPLAY: u64 = 5;
/// A store can be written to the cache this many cycles after its own, in the first cycle without a load or AMO; until then a load
/// of the same bytes is replayed (M1: gaps 0 and 1, and four stores followed by four loads).
pub const STORE_DRAIN: u64 = 2;
/// A load or AMO this many instructions or fewer behind an unordered AMO is replayed (M1: gaps 0 to 2; 3 assumed).
pub const AMO_WINDOW: usize = 4;
/// A `fence` right behind a memory access, beyond its issue cycle; one less for each instruction between (M1).
pub const FENCE_BEHIND_ACCESS: u64 = 2;

/// CSR write that flushes the pipeline, beyond its issue cycle (M1; S: CSR.scala, all but 0x?40 to 0x?43).
pub const CSR_FLUSH: u64 = 4;
/// SFENCE.VMA, FENCE.I, xRET beyond the issue cycle (M1).
pub const SYSTEM_FLUSH: u64 = 4;
/// From the slot of a trapping instruction to the first handler instruction (M1).
pub const TRAP: u64 = 5;
/// From the interrupted slot to the first handler instruction (M1: 11 from `csrs mip`, of which 5 are the flush).
pub const INTERRUPT: u64 = 6;
/// The same out of `wfi`, or from the line to the next instruction if the trap is masked (M1: 10 from the store to `msip`).
pub const WFI_WAKE: u64 = 3;
/// From a store to a device register to the interrupt line that it raises (M1: 13 from the store to `msip` to the handler).
pub const LINE_OF_ACCESS: u64 = 6;
/// From a device's line through the PLIC to the hart (M1: 19 from the store to the device to the handler).
pub const LINE_OF_PLIC: u64 = 6;

/// Mispredicted branch, jump or return (M1).
pub const MISPREDICT: u64 = 3;
/// Direct transfer that misses in the BTB and is caught by predecode (M1).
pub const PREDECODE_REDIRECT: u64 = 1;
/// Transfer to a 4-byte instruction at an address of 2 mod 4 (M1).
pub const SPLIT_TARGET: u64 = 1;
/// BTB entries (S: BTB.scala).
pub const BTB_ENTRIES: usize = 28;
/// 1-bit history counters (S: BTB.scala).
pub const BHT_ENTRIES: usize = 512;
/// Global history bits (S: BTB.scala).
pub const BHT_HISTORY: u32 = 8;
/// Return stack entries (S: BTB.scala).
pub const RAS_ENTRIES: usize = 6;

/// Multiplier: bits per cycle (M1).
pub const MUL_BITS: u32 = 8;
/// Multiply beyond its iterations (M1: 2 + I to a dependent).
pub const MUL_BASE: u64 = 2;
/// Fewest iterations (M1).
pub const MUL_MIN: u64 = 2;
/// Least wait for the result of a multiply, divide or uncached load if every instruction since then wrote a register: such results
/// go through a write port of their own, which only gets a slot that those leave free (M1).
pub const WRITE_PORT_WAIT: u64 = 3;
/// Cycles of `mulh mulhu mulhsu` (M1: no early out).
pub const MULH: u64 = 10;
/// Divide beyond its iterations (M1).
pub const DIV_BASE: u64 = 5;
/// Most divide iterations counted (M1).
pub const DIV_MAX: u64 = 62;

/// Bubbles before a dependent of a single-precision sum, product or fused multiply-add (M1: a chain of 4; S: FPUParams, sfma 3).
pub const FMA_SINGLE_BUBBLES: u64 = 3;
/// The same in double precision (M1: a chain of 6; S: FPUParams, dfma 4).
pub const FMA_DOUBLE_BUBBLES: u64 = 5;
/// Bubbles before a dependent of a sign injection, minimum, maximum or change of format (M1: `fsgnj` chain of 4).
pub const FLOAT_MOVE_BUBBLES: u64 = 3;
/// Bubbles before an f-register that came from an x-register can be used (M1: round trip of 7, less the way back).
pub const INTEGER_TO_FLOAT_BUBBLES: u64 = 3;
/// Bubbles before an integer dependent of a comparison, class, conversion or move from an f-register (M1: `flt.d` to use 3).
pub const FLOAT_TO_INTEGER_BUBBLES: u64 = 2;
/// Bubbles before a dependent of `flw fld` (M1: `fld` and a store of it, 5 per pair).
pub const FLOAT_LOAD_BUBBLES: u64 = 3;
/// `fdiv.s` and `fsqrt.s` to a dependent, and occupancy of the iterative unit (M1, operands 7 and 3; the dependence on operands
/// was not measured. `fsqrt.s` is taken as `fdiv.s`).
pub const DIVIDE_SINGLE: u64 = 28;
/// `fdiv.d`, as [`DIVIDE_SINGLE`] (M1).
pub const DIVIDE_DOUBLE: u64 = 58;
/// `fsqrt.d`, as [`DIVIDE_SINGLE`] (M1).
pub const ROOT_DOUBLE: u64 = 57;

/// Cache sets and ways of each L1 (S: Configs.scala, WithNBigCores: 16 KiB, 64-byte lines).
pub const L1_SETS: usize = 64;
/// See [`L1_SETS`].
pub const L1_WAYS: usize = 4;
/// Data miss on a one-hart machine, beyond the read latency RL (M1).
pub const L1D_MISS_ONE_HART: u64 = 13;
/// Data miss with several harts, line clean or absent elsewhere, and upgrades (M4).
pub const L1D_MISS: u64 = 22;
/// Data miss, line dirty in another L1, beyond RL + WL (M4).
pub const L1D_MISS_DIRTY_ELSEWHERE: u64 = 30;
/// How much of a transaction on a line overlaps with the one before it on the same line (M4: an AMO that four harts contend for
/// moves every 30.75, 58 and 86 cycles, where one move alone takes 32, 61 and 90).
pub const HUB_OVERLAP: u64 = 3;
/// Cycles from one line through the hub to the next, whoever asks (M4: four read streams get a line every 13.5 cycles).
pub const HUB_LINE: u64 = 13;
/// The same for a dirty victim on its way out (M4: four write streams get one every 17.25 cycles, beyond [`HUB_LINE`]).
pub const HUB_VICTIM: u64 = 4;
/// Dirty victim of a miss (M1).
pub const DIRTY_VICTIM: u64 = 13;
/// Instruction miss on a one-hart machine, beyond RL (M1).
pub const L1I_MISS_ONE_HART: u64 = 18;
/// Instruction miss with several harts, beyond RL (M4).
pub const L1I_MISS: u64 = 22;

/// Sectored TLB entries for 4 KiB pages, four consecutive pages each (S: TLB.scala).
pub const TLB_ENTRIES: usize = 8;
/// Pages per sectored entry (S).
pub const TLB_SECTORS: u64 = 4;
/// Entries for superpages (S).
pub const TLB_SUPERPAGES: usize = 4;
/// Page table entries remembered by the walker (S: PTW.scala).
pub const PTE_CACHE: usize = 8;
/// TLB miss beyond its levels (M1: 5 + 4 per level walked).
pub const WALK_BASE: u64 = 5;
/// Each level that the walker reads from the L1D (M1).
pub const WALK_LEVEL: u64 = 4;
/// Each level that the PTE cache answers (M1: 11 in all with two such levels and a leaf read).
pub const WALK_CACHED: u64 = 1;

/// Uncached read to use: CLINT 9, PLIC 10, AXI port 10 + device latency, each with a device latency of 1 (M1).
pub const READ_CLINT: u64 = 8;
/// See [`READ_CLINT`].
pub const READ_PLIC: u64 = 9;
/// See [`READ_CLINT`].
pub const READ_AXI: u64 = 10;
/// Occupancy of the one uncached slot by a write, beyond the device latency (M1).
pub const WRITE_OCCUPANCY: u64 = 6;

/// `uipi.*`: coprocessor issue and response (U; chosen so that send to handler comes near the published 100 cycles at
/// 50 MHz and the RTL's 10 cycles from store to line).
pub const UIPI_ISSUE: u64 = 6;
/// UINTC store reaching the device and its registered line (published RTL simulation: about 10).
pub const UIPI_STORE: u64 = 8;
