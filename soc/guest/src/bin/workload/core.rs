//! Speed workload `core`: what CoreMark does, written anew: a linked list searched, reversed and sorted, small integer matrices, a
//! state machine over text, everything folded into a CRC. Every hart runs its own copy; nothing is shared.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare core");
}

#[cfg(target_os = "none")]
mod program {
    use core::hint::black_box;
    use soc_guest::together;

    const ROUNDS: u32 = 1280;
    /// CRC of a run, found with this program; the same on every machine and in every mode.
    const EXPECTED: u16 = 0x8015;
    const ITEMS: usize = 128;
    const SIDE: usize = 12;
    const TEXT: &[u8] = b"5012,0xAB,-874,1.25e4,+7,0x,3.,,12a,99999,-1.5E-3,abc,42,0x7fff,+,1e9";
    const END: u16 = u16::MAX;

    fn crc(mut crc: u16, word: u32) -> u16 {
        for byte in word.to_le_bytes() {
            crc ^= u16::from(byte);
            for _ in 0..8 {
                let carry = crc & 1 != 0;
                crc >>= 1;
                if carry {
                    crc ^= 0xA001;
                }
            }
        }
        crc
    }

    #[derive(Clone, Copy)]
    struct Item {
        next: u16,
        index: u16,
        value: u32,
    }

    struct List {
        items: [Item; ITEMS],
        head: u16,
    }

    impl List {
        fn new(seed: u32) -> Self {
            let item = |at: usize| {
                let value = (at as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 20;
                Item { next: if at + 1 < ITEMS { at as u16 + 1 } else { END }, index: at as u16, value }
            };
            Self { items: core::array::from_fn(item), head: 0 }
        }

        fn find(&self, value: u32) -> Option<u16> {
            let mut at = self.head;
            while at != END {
                let item = &self.items[usize::from(at)];
                if item.value == value {
                    return Some(item.index);
                }
                at = item.next;
            }
            None
        }

        fn reverse(&mut self) {
            let (mut at, mut before) = (self.head, END);
            while at != END {
                let next = self.items[usize::from(at)].next;
                self.items[usize::from(at)].next = before;
                (before, at) = (at, next);
            }
            self.head = before;
        }

        /// Bottom-up merge sort by value, then index.
        fn sort(&mut self) {
            let mut width = 1;
            loop {
                let (mut rest, mut head, mut tail, mut merges) = (self.head, END, END, 0);
                while rest != END {
                    merges += 1;
                    let (mut left, mut left_size, mut right) = (rest, 0, rest);
                    while left_size < width && right != END {
                        left_size += 1;
                        right = self.items[usize::from(right)].next;
                    }
                    let mut right_size = width;
                    while left_size > 0 || (right_size > 0 && right != END) {
                        let take_left = right_size == 0 || right == END || (left_size > 0 && self.before(left, right));
                        let taken = if take_left { left } else { right };
                        let next = self.items[usize::from(taken)].next;
                        if take_left {
                            (left, left_size) = (next, left_size - 1);
                        } else {
                            (right, right_size) = (next, right_size - 1);
                        }
                        if tail == END {
                            head = taken;
                        } else {
                            self.items[usize::from(tail)].next = taken;
                        }
                        tail = taken;
                    }
                    rest = right;
                }
                self.items[usize::from(tail)].next = END;
                self.head = head;
                if merges <= 1 {
                    return;
                }
                width *= 2;
            }
        }

        fn before(&self, a: u16, b: u16) -> bool {
            let (a, b) = (&self.items[usize::from(a)], &self.items[usize::from(b)]);
            (a.value, a.index) <= (b.value, b.index)
        }

        fn checksum(&self) -> u16 {
            let (mut sum, mut at) = (0, self.head);
            while at != END {
                let item = &self.items[usize::from(at)];
                sum = crc(sum, item.value ^ u32::from(item.index) << 16);
                at = item.next;
            }
            sum
        }
    }

    fn matrices(seed: u32) -> u16 {
        let fill = |salt: u32| -> [[i16; SIDE]; SIDE] {
            core::array::from_fn(|row| {
                core::array::from_fn(|column| ((row * SIDE + column) as u32).wrapping_mul(seed ^ salt) as i16 >> 4)
            })
        };
        let (a, b) = (black_box(fill(0x9E37)), black_box(fill(0x79B9)));
        let mut sum = 0;
        for row in &a {
            for column in 0..SIDE {
                let product: i32 = row.iter().zip(&b).map(|(&x, y)| i32::from(x) * i32::from(y[column])).sum();
                sum = crc(sum, (product >> 3) as u32);
            }
        }
        sum
    }

    /// How often each state was entered while reading numbers.
    fn states(text: &[u8]) -> [u32; 8] {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Start,
            Sign,
            Integer,
            Hex,
            Fraction,
            Exponent,
            Scale,
            Invalid,
        }
        let mut counts = [0; 8];
        let mut state = State::Start;
        for &byte in text {
            state = match (state, byte) {
                (_, b',') => State::Start,
                (State::Start, b'+' | b'-') => State::Sign,
                (State::Start | State::Sign | State::Integer, b'0'..=b'9') => State::Integer,
                (State::Integer, b'x') => State::Hex,
                (State::Hex, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => State::Hex,
                (State::Integer, b'.') => State::Fraction,
                (State::Fraction, b'0'..=b'9') => State::Fraction,
                (State::Integer | State::Fraction, b'e' | b'E') => State::Exponent,
                (State::Exponent, b'+' | b'-' | b'0'..=b'9') | (State::Scale, b'0'..=b'9') => State::Scale,
                _ => State::Invalid,
            };
            counts[state as usize] += 1;
        }
        counts
    }

    #[inline(never)]
    fn work() -> u16 {
        let mut sum = 0;
        for round in 0..ROUNDS {
            let mut list = List::new(black_box(round));
            for value in (0..4096).step_by(64) {
                sum = crc(sum, list.find(value).map_or(0, u32::from));
            }
            list.reverse();
            sum = crc(sum, u32::from(list.checksum()));
            list.sort();
            sum = crc(sum, u32::from(list.checksum()));
            sum = crc(sum, u32::from(matrices(round | 1)));
            for count in states(black_box(TEXT)) {
                sum = crc(sum, count);
            }
        }
        sum
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        together::run(hart, || work() == EXPECTED);
    }
}
