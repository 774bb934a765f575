//! Branch prediction.

use soc_guest::{copies, few, measure, turns};

/// Constant loop bodies and chains of jumps.
pub fn loops_and_jumps() {
    turns!("loop of 2", "", ".balign 64\nmv t0, a2\n.balign 64\n2: addi t0, t0, -1\nbnez t0, 2b", 1);
    turns!(
        "loop of 8",
        "",
        "mv t0, a2\n.balign 64\n2:\n.rept 6\nadd a3, a1, a1\n.endr\naddi t0, t0, -1\nbnez t0, 2b",
        1
    );
    turns!(
        "loop of 2, head at 2 mod 4",
        "",
        "mv t0, a2\n.balign 64\n.option rvc\nc.nop\n.option norvc\n2: addi t0, t0, -1\nbnez t0, 2b\n.option rvc\nc.nop\n.option norvc",
        1
    );
    macro_rules! chain {
        ($name:literal, $length:expr) => {{
            let cycles: u64 = copies!($length, "", "j 2f\nnop\n2:", 1, 1);
            let none: u64 = copies!(0, "", "nop", 1, 1);
            measure::report($name, cycles - none, $length);
        }};
    }
    chain!("chain of 8 jumps", 8);
    chain!("chain of 27 jumps", 27);
    chain!("chain of 32 jumps", 32);
    chain!("chain of 48 jumps", 48);
    chain!("chain of 64 jumps", 64);
    few!("call, add, return", "j 4f\n.balign 64\n3: add a3, a3, a3\nret\n4:", "jal ra, 3b");
    few!("call of a bare return", "j 4f\n.balign 64\n3: ret\n4:", "jal ra, 3b");
    turns!(
        "indirect jump, one target",
        "",
        "mv t0, a2\nla t1, 3f\n.balign 64\n2: jr t1\nnop\n3: addi t0, t0, -1\nbnez t0, 2b",
        1
    );
    turns!(
        "indirect jump, two targets in turn",
        "",
        "mv t0, a2\nla t1, 3f\nla t2, 4f\nxor t2, t2, t1\n.balign 64\n2: jr t1\nnop\n3: nop\n4: xor t1, t1, t2\n\
         addi t0, t0, -1\nbnez t0, 2b",
        1
    );
}

/// 1024 such branches on the bits of a xorshift generator (Marsaglia 2003, 13-7-17).
macro_rules! random_turns {
    ($test:literal) => {
        copies!(
            1,
            "",
            concat!(
                "mv t0, a2\n.balign 64\n2: slli t3, a1, 13\nxor a1, a1, t3\nsrli t3, a1, 7\nxor a1, a1, t3\n",
                "slli t3, a1, 17\nxor a1, a1, t3\n",
                $test,
                "\nbnez t2, 3f\nnop\nj 4f\n3: nop\nnop\n4: addi t0, t0, -1\nbnez t0, 2b"
            ),
            0x2545_F491_4F6C_DD1D,
            1024
        )
    };
}

/// A branch that follows the bits of a1; cycles beyond one that is never taken. Both ways are two cycles long and end at
/// different addresses: a branch to the next instruction cannot be mispredicted, whatever its direction.
pub fn patterns() {
    macro_rules! pattern {
        ($bits:expr) => {{
            let (few, many): (u64, u64) = turns!(
                "",
                "mv t0, a2\n.balign 64\n2: andi t2, a1, 1\nsrli t3, a1, 1\nslli t4, a1, 63\nor a1, t3, t4\n\
                 bnez t2, 3f\nnop\nj 4f\n3: nop\nnop\n4: addi t0, t0, -1\nbnez t0, 2b",
                $bits
            );
            many - few
        }};
    }
    let never = pattern!(0u64);
    let outcomes = |name: &str, cycles: u64| measure::report(name, cycles - never, 128);
    outcomes("pattern T", pattern!(u64::MAX));
    outcomes("pattern TN", pattern!(0x5555_5555_5555_5555u64));
    outcomes("pattern TTNN", pattern!(0x3333_3333_3333_3333u64));
    outcomes("pattern TNNN", pattern!(0x1111_1111_1111_1111u64));
    outcomes("pattern NTTT", pattern!(0xEEEE_EEEE_EEEE_EEEEu64));
    outcomes("pattern TNNNNNNN", pattern!(0x0101_0101_0101_0101u64));
    let (random, never): (u64, u64) = (random_turns!("andi t2, a1, 1"), random_turns!("andi t2, a1, 0"));
    measure::report("pattern random", random - never, 1024);
}
