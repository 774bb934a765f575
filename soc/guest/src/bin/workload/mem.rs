//! Speed workload `mem`: a sieve, a quicksort, a pointer chase through 128 KiB, a hash table, copies. Every hart has its own memory.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare mem");
}

#[cfg(target_os = "none")]
mod program {
    use core::cell::UnsafeCell;
    use core::hint::black_box;
    use soc_guest::entry::MAX_HARTS;
    use soc_guest::together;

    const ROUNDS: u32 = 12;
    const SIEVE: usize = 64 << 10;
    const SORTED: usize = 16 << 10;
    const LINKS: usize = 32 << 10;
    const STEPS: usize = 64 << 10;
    const TABLE: usize = 8 << 10;
    /// Primes below 2^16.
    const PRIMES: usize = 6542;

    struct Arena {
        sieve: [u8; SIEVE],
        numbers: [u32; SORTED],
        links: [u32; LINKS],
        table: [u32; TABLE],
        copy: [u32; LINKS],
    }

    struct Arenas([UnsafeCell<Arena>; MAX_HARTS]);
    // SAFETY: each hart uses the arena of its number and no other.
    unsafe impl Sync for Arenas {}

    static ARENAS: Arenas = Arenas(
        [const {
            UnsafeCell::new(Arena {
                sieve: [0; SIEVE],
                numbers: [0; SORTED],
                links: [0; LINKS],
                table: [0; TABLE],
                copy: [0; LINKS],
            })
        }; MAX_HARTS],
    );

    struct Random(u32);

    impl Random {
        /// xorshift32 (Marsaglia 2003).
        fn next(&mut self) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 17;
            self.0 ^= self.0 << 5;
            self.0
        }
    }

    fn sieve(flags: &mut [u8; SIEVE]) -> usize {
        flags.fill(1);
        flags[..2].fill(0);
        for number in 2..256 {
            if flags[number] != 0 {
                flags[number * number..].iter_mut().step_by(number).for_each(|flag| *flag = 0);
            }
        }
        flags.iter().map(|&flag| usize::from(flag)).sum()
    }

    fn quicksort(mut numbers: &mut [u32]) {
        while numbers.len() > 1 {
            // Hoare's partition; the lower middle keeps `high` below the last place.
            let pivot = numbers[(numbers.len() - 1) / 2];
            let (mut low, mut high) = (0, numbers.len());
            loop {
                while numbers[low] < pivot {
                    low += 1;
                }
                high -= 1;
                while numbers[high] > pivot {
                    high -= 1;
                }
                if low >= high {
                    break;
                }
                numbers.swap(low, high);
                low += 1;
            }
            let (left, right) = numbers.split_at_mut(high + 1);
            // The shorter half by recursion, so that the stack stays small.
            if left.len() < right.len() {
                quicksort(left);
                numbers = right;
            } else {
                quicksort(right);
                numbers = left;
            }
        }
    }

    /// True if everything came out right.
    #[inline(never)]
    fn work(arena: &mut Arena) -> bool {
        let mut random = Random(2_463_534_242);
        let mut right = true;
        for round in 0..ROUNDS {
            right &= sieve(&mut arena.sieve) == PRIMES;
            arena.numbers.fill_with(|| random.next());
            quicksort(&mut arena.numbers);
            right &= arena.numbers.is_sorted();
            // One cycle through all links: Sattolo's algorithm.
            (0..LINKS).for_each(|at| arena.links[at] = at as u32);
            for last in (1..LINKS).rev() {
                arena.links.swap(last, random.next() as usize % last);
            }
            let (mut at, mut turns) = (0, 0);
            for _ in 0..STEPS {
                at = arena.links[at] as usize;
                turns += usize::from(at == 0);
            }
            right &= turns == STEPS / LINKS;
            arena.table.fill(0);
            let keys = || (1..=TABLE as u32 / 2).map(|key| key.wrapping_mul(2_654_435_761) ^ round);
            for key in keys() {
                let mut slot = key as usize % TABLE;
                while arena.table[slot] != 0 {
                    slot = (slot + 1) % TABLE;
                }
                arena.table[slot] = key;
            }
            for key in keys() {
                let mut slot = key as usize % TABLE;
                while arena.table[slot] != key {
                    slot = (slot + 1) % TABLE;
                }
            }
            for _ in 0..4 {
                arena.copy.copy_from_slice(black_box(&arena.links));
            }
            right &= black_box(&arena.copy) == &arena.links;
        }
        right
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        let Some(arena) = ARENAS.0.get(hart as usize) else { return };
        // SAFETY: this hart's own arena, and this is the only reference to it.
        together::run(hart, || work(unsafe { &mut *arena.get() }));
    }
}
