//! The decoded instruction: 16 bytes, operands ready to use.

/// What a decoded instruction does. Ends of blocks are listed in [`Op::ends_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the manual's mnemonics
pub enum Op {
    // integer, register-immediate
    Nop,
    Li,
    Mv,
    Auipc,
    Addi,
    Slti,
    Sltiu,
    Xori,
    Ori,
    Andi,
    Slli,
    Srli,
    Srai,
    Addiw,
    Slliw,
    Srliw,
    Sraiw,
    // integer, register-register
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Addw,
    Subw,
    Sllw,
    Srlw,
    Sraw,
    // M
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
    Mulw,
    Divw,
    Divuw,
    Remw,
    Remuw,
    // memory
    Lb,
    Lh,
    Lw,
    Ld,
    Lbu,
    Lhu,
    Lwu,
    Flw,
    Fld,
    Sb,
    Sh,
    Sw,
    Sd,
    Fsw,
    Fsd,
    /// Arithmetic of F and D; `imm` holds the raw instruction.
    Float,
    // A
    LrW,
    LrD,
    ScW,
    ScD,
    AmoswapW,
    AmoaddW,
    AmoxorW,
    AmoandW,
    AmoorW,
    AmominW,
    AmomaxW,
    AmominuW,
    AmomaxuW,
    AmoswapD,
    AmoaddD,
    AmoxorD,
    AmoandD,
    AmoorD,
    AmominD,
    AmomaxD,
    AmominuD,
    AmomaxuD,
    // order
    Fence,
    Pause,
    FenceI,
    // control transfer
    Jal,
    Jalr,
    Beq,
    Bne,
    Blt,
    Bge,
    Bltu,
    Bgeu,
    // system; `imm` holds the raw instruction
    Csr,
    Ecall,
    Ebreak,
    Uret,
    Sret,
    Mret,
    Wfi,
    SfenceVma,
    UipiSend,
    UipiRead,
    UipiWrite,
    UipiActivate,
    UipiDeactivate,
    Illegal,
    /// Not an instruction: the block falls through to the next one.
    End,
}

impl Op {
    /// True for instructions after which the next one must be looked up again.
    pub fn ends_block(self) -> bool {
        self as u8 >= Op::FenceI as u8
    }

    /// True for instructions that must see other harts in order of time, so that a block may only start with them.
    pub fn starts_block(self) -> bool {
        (self as u8 >= Op::LrW as u8 && self as u8 <= Op::Fence as u8)
            || (self as u8 >= Op::UipiSend as u8 && self as u8 <= Op::UipiDeactivate as u8)
    }

    /// True for loads that hit in one cycle and bypass late (`lb lbu lh lhu`).
    pub fn is_narrow_load(self) -> bool {
        matches!(self, Op::Lb | Op::Lbu | Op::Lh | Op::Lhu)
    }

    /// True for the M extension.
    pub fn is_multiply_or_divide(self) -> bool {
        self as u8 >= Op::Mul as u8 && self as u8 <= Op::Remuw as u8
    }

    /// True for plain loads.
    pub fn is_load(self) -> bool {
        self as u8 >= Op::Lb as u8 && self as u8 <= Op::Fld as u8
    }

    /// True for plain stores.
    pub fn is_store(self) -> bool {
        self as u8 >= Op::Sb as u8 && self as u8 <= Op::Fsd as u8
    }

    /// True for conditional branches.
    pub fn is_branch(self) -> bool {
        self as u8 >= Op::Beq as u8 && self as u8 <= Op::Bgeu as u8
    }

    /// True for read-modify-write atomics.
    pub fn is_amo(self) -> bool {
        self as u8 >= Op::AmoswapW as u8 && self as u8 <= Op::AmomaxuD as u8
    }

    /// Bytes that a load, store or atomic moves.
    pub fn access_bytes(self) -> u8 {
        match self {
            Op::Lb | Op::Lbu | Op::Sb => 1,
            Op::Lh | Op::Lhu | Op::Sh => 2,
            Op::Lw | Op::Lwu | Op::Flw | Op::Sw | Op::Fsw | Op::LrW | Op::ScW => 4,
            op if op as u8 >= Op::AmoswapW as u8 && op as u8 <= Op::AmomaxuW as u8 => 4,
            _ => 8,
        }
    }
}

/// Register slot that swallows writes to x0.
pub const SINK: u8 = 32;

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub op: Op,
    /// Destination slot; [`SINK`] where the instruction names x0. The number itself where it names an f-register.
    pub rd: u8,
    /// First source register, or the 5-bit immediate of a CSR instruction.
    pub rs1: u8,
    /// Second source register.
    pub rs2: u8,
    /// Immediate; the raw instruction for system and illegal ones.
    pub imm: i32,
    /// Byte offset from the start of the block.
    pub offset: u16,
    /// Static cycles from the start of the block up to and including this instruction.
    pub cost: u16,
    /// 2 or 4.
    pub len: u8,
    /// Position in the block, counted from 1.
    pub index: u8,
    /// Ordering bits of an atomic (`aq` or `rl` set).
    pub ordered: bool,
    /// What follows, as far as the timing model must know when this instruction turns out to be slow.
    pub ahead: Ahead,
}

/// The instructions behind one whose cost is known only when it runs; filled in by `timing::pipeline`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead(u8);

impl Ahead {
    const PORT_BUSY: u8 = 1 << 7;
    const MAX_DISTANCE: u64 = Self::PORT_BUSY as u64 - 1;

    /// `distance`: cycles from this instruction to the first that needs its result or its unit, 1 if that is the next one.
    /// `port_busy`: every instruction in between writes a register.
    pub fn of_result(distance: u64, port_busy: bool) -> Self {
        Self(distance.min(Self::MAX_DISTANCE) as u8 | if port_busy { Self::PORT_BUSY } else { 0 })
    }

    /// Of a store: another one is next.
    pub fn store_follows() -> Self {
        Self(1)
    }

    /// See [`Ahead::of_result`].
    #[inline(always)]
    pub fn distance(self) -> u64 {
        u64::from(self.0 & !Self::PORT_BUSY)
    }

    /// See [`Ahead::of_result`].
    #[inline(always)]
    pub fn port_busy(self) -> bool {
        self.0 & Self::PORT_BUSY != 0
    }

    /// See [`Ahead::store_follows`].
    #[inline(always)]
    pub fn is_store(self) -> bool {
        self.0 != 0
    }
}

const _: () = assert!(size_of::<Insn>() == 16);

impl Insn {
    /// An instruction outside any block.
    pub fn new(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Self {
        Self {
            op,
            rd: if rd == 0 { SINK } else { rd },
            rs1,
            rs2,
            imm,
            offset: 0,
            cost: 0,
            len: 4,
            index: 0,
            ordered: false,
            ahead: Ahead::default(),
        }
    }
}
