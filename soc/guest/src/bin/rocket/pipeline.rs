//! Straight-line constructs: integer, multiply and divide, floating point, atomics.

use soc_guest::{few, line};

pub fn integer() {
    line!("alu: dependent add", "add a1, a1, a1");
    line!("alu: independent add", "add a3, a1, a2");
    line!("alu: slli", "slli a3, a1, 3");
    line!("alu: lui and addi", "lui a3, 5\naddi a3, a3, 7");
    line!("alu: compressed add", ".option rvc\nc.add a1, a2\n.option norvc");
    line!(
        "alu: 2- and 4-byte mix",
        ".option rvc\nc.add a1, a2\n.option norvc\nadd a3, a1, a2\n.option rvc\nc.add a1, a2\n.option norvc"
    );
    line!("load: ld chain", "ld a0, 0(a0)");
    line!("load: ld and dependent add", "ld a1, 8(a0)\nadd a2, a1, a1");
    line!("load: ld, independent, dependent", "ld a1, 8(a0)\nadd a3, a2, a2\nadd a4, a1, a1");
    line!("load: lw and dependent add", "lw a1, 8(a0)\nadd a2, a1, a1");
    line!("load: lwu and dependent add", "lwu a1, 8(a0)\nadd a2, a1, a1");
    line!("load: lh and dependent add", "lh a1, 8(a0)\nadd a2, a1, a1");
    line!("load: lbu and dependent add", "lbu a1, 8(a0)\nadd a2, a1, a1");
    line!("load: lbu, independent, dependent", "lbu a1, 8(a0)\nadd a3, a2, a2\nadd a4, a1, a1");
    line!("load: ld and branch on it", "ld a1, 8(a0)\nbnez a1, 2f\n2:");
    line!("load: three independent loads", "ld a3, 8(a0)\nld a4, 16(a0)\nld a5, 24(a0)");
    line!("store: same line", "sd a1, 16(a0)");
    line!("store: different lines", "sd a1, 16(a0)\nsd a1, 128(a0)");
    line!("store: bytes", "sb a1, 16(a0)");
    line!("store, overlapping load", "sd a1, 16(a0)\nld a3, 16(a0)");
    line!("store, other, overlapping load", "sd a1, 16(a0)\nadd a4, a1, a1\nld a3, 16(a0)");
    line!("store, two others, overlapping load", "sd a1, 16(a0)\nadd a4, a1, a1\nadd a4, a1, a1\nld a3, 16(a0)");
    line!("store, load of another word of the line", "sd a1, 16(a0)\nld a3, 32(a0)");
    line!("store, load of another line", "sd a1, 16(a0)\nld a3, 256(a0)");
    few!(
        "4 stores, 4 loads of the same words",
        "",
        "sd a1, 0(a0)\nsd a1, 8(a0)\nsd a1, 16(a0)\nsd a1, 24(a0)\nld t0, 0(a0)\nld t1, 8(a0)\nld t2, 16(a0)\nld t3, 24(a0)\n\
         add a3, a3, a3\nadd a3, a3, a3\nadd a3, a3, a3\nadd a3, a3, a3"
    );
}

/// The lowest `bits` bits set.
const fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

pub fn multiply_and_divide() {
    line!("mul: 2 bits", "mul a1, a1, a2", ones(2), 1);
    line!("mul: 13 bits", "mul a1, a1, a2", ones(13), 1);
    line!("mul: 29 bits", "mul a1, a1, a2", ones(29), 1);
    line!("mul: 45 bits", "mul a1, a1, a2", ones(45), 1);
    line!("mul: 61 bits", "mul a1, a1, a2", ones(61), 1);
    line!("mul: negative", "mul a1, a1, a2", u64::MAX, 1);
    line!("mulw: 2 bits", "mulw a1, a1, a2", ones(2), 1);
    line!("mulw: 13 bits", "mulw a1, a1, a2", ones(13), 1);
    line!("mulw: 32 bits", "mulw a3, a1, a2", ones(32), 1);
    line!("mulh", "mulh a3, a1, a2", 7, 7);
    line!("mulhu", "mulhu a3, a1, a2", 7, 7);
    line!("mulhsu", "mulhsu a3, a1, a2", 7, 7);
    line!("mul: independent", "mul a3, a1, a2\nmul a4, a1, a2", 3, 3);
    few!("mul, 20 adds, use", "", "mul a3, a1, a2\n.rept 20\nadd a4, a1, a1\n.endr\nadd a5, a3, a3");
    line!("div: 7 / 3", "div a3, a1, a2", 7, 3);
    line!("div: 2^62 / 2^61", "div a3, a1, a2", 1u64 << 62, 1u64 << 61);
    line!("div: 1000 / 1000", "div a3, a1, a2", 1000, 1000);
    line!("div: 0 / 1", "div a3, a1, a2", 0, 1);
    line!("div: 1000 / 10", "div a3, a1, a2", 1000, 10);
    line!("div: 10^9 / 1000", "div a3, a1, a2", 1_000_000_000, 1000);
    line!("div: 2^62 / 1", "div a3, a1, a2", 1u64 << 62, 1);
    line!("div: 0 / 3", "div a3, a1, a2", 0, 3);
    line!("div: 5 / 0", "div a3, a1, a2", 5, 0);
    line!("div: 3 / 1000", "div a3, a1, a2", 3, 1000);
    line!("div: -1000 / 10", "div a3, a1, a2", -1000i64 as u64, 10);
    line!("rem: -7 / 3", "rem a3, a1, a2", -7i64 as u64, 3);
    line!("div: -7 / -3", "div a3, a1, a2", -7i64 as u64, -3i64 as u64);
    line!("divw: 10^9 / 1000", "divw a3, a1, a2", 1_000_000_000, 1000);
}

/// Operands: f1 = 7.0, f2 = 3.0, both formats by setup.
pub fn floating_point() {
    macro_rules! float {
        ($name:literal, single, $body:literal) => {
            line!($name, "li t0, 7\nfcvt.s.l f1, t0\nli t0, 3\nfcvt.s.l f2, t0", $body, 1, 1);
        };
        ($name:literal, double, $body:literal) => {
            line!($name, "li t0, 7\nfcvt.d.l f1, t0\nli t0, 3\nfcvt.d.l f2, t0", $body, 1, 1);
        };
    }
    float!("fadd.s chain", single, "fadd.s f3, f3, f2");
    float!("fmul.s chain", single, "fmul.s f3, f3, f2");
    float!("fmadd.s chain", single, "fmadd.s f3, f3, f2, f1");
    float!("fadd.d chain", double, "fadd.d f3, f3, f2");
    float!("fmul.d chain", double, "fmul.d f3, f3, f2");
    float!("fmadd.d chain", double, "fmadd.d f3, f3, f2, f1");
    few!(
        "fmadd.d independent",
        "li t0, 7\nfcvt.d.l f1, t0\nli t0, 3\nfcvt.d.l f2, t0",
        "fmadd.d f3, f1, f2, f1\nfmadd.d f4, f1, f2, f1\nfmadd.d f5, f1, f2, f1\n\
         fmadd.d f6, f1, f2, f1\nfmadd.d f7, f1, f2, f1\nfmadd.d f8, f1, f2, f1"
    );
    float!("fsgnj.d chain", double, "fsgnj.d f3, f3, f2");
    float!("flt.d to integer use", double, "flt.d a3, f1, f2\nadd a4, a3, a3");
    float!("fcvt round trip", double, "fcvt.d.l f3, a3\nfcvt.l.d a3, f3");
    float!("fmv round trip", double, "fmv.d.x f3, a3\nfmv.x.d a3, f3");
    float!("fld and use as store data", double, "fld f3, 16(a0)\nfsd f3, 256(a0)");
    float!("fdiv.s", single, "fdiv.s f3, f1, f2");
    float!("fdiv.d", double, "fdiv.d f3, f1, f2");
    float!("fsqrt.d", double, "fsqrt.d f3, f1");
}

pub fn atomics() {
    line!("amoadd, result unused", "amoadd.d x0, a1, (a0)");
    line!("amoadd and use", "amoadd.d a3, a1, (a0)\nadd a4, a3, a3");
    line!("amoswap.aq and use", "amoswap.d.aq a3, a1, (a0)\nadd a4, a3, a3");
    line!("amoswap.rl and use", "amoswap.d.rl a3, a1, (a0)\nadd a4, a3, a3");
    line!("amoswap.aqrl and use", "amoswap.d.aqrl a3, a1, (a0)\nadd a4, a3, a3");
    few!(
        "amoadd, 4 alu, load, 4 alu",
        "",
        "amoadd.d x0, a1, (a0)\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\nld a4, 256(a0)\n\
         add a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1"
    );
    few!(
        "amoadd, load, 8 alu",
        "",
        "amoadd.d x0, a1, (a0)\nld a4, 256(a0)\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\n\
         add a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1\nadd a3, a1, a1"
    );
    line!("lr and use", "lr.d a3, (a0)\nadd a4, a3, a3");
    line!("lr, sc, use", "lr.d a3, (a0)\nsc.d a4, a3, (a0)\nadd a5, a4, a4");
    line!("lr, addi, sc, bnez", "lr.d a3, (a0)\naddi a3, a3, 1\nsc.d a4, a3, (a0)\nbnez a4, 2f\n2:");
    line!("lr.aq, addi, sc.rl, bnez", "lr.d.aq a3, (a0)\naddi a3, a3, 1\nsc.d.rl a4, a3, (a0)\nbnez a4, 2f\n2:");
    line!("failing sc and use", "sc.d a4, a1, (a0)\nadd a5, a4, a4");
}
