//! What `ipc-client` and `ipc-server` say to each other, over either transport.

/// The null call: one word there, [`answer`] of it back.
pub const NULL: u16 = 1;
/// How many user interrupts the server has taken since it started: nothing there, one word back.
pub const INTERRUPTS: u16 = 2;

/// The reply to `word`. Cheap, and never the word itself, so that an echo or an old buffer does not pass for an answer.
#[inline(always)]
pub const fn answer(word: u64) -> u64 {
    !word
}

/// The request of call `index` of `caller`: no two calls of a run carry the same word.
#[inline(always)]
pub const fn request(caller: usize, index: u64) -> u64 {
    (caller as u64) << 48 | index
}

/// How many of `calls` caller `caller` of `callers` makes, so that all are made and no two callers differ by more than one.
pub const fn share(calls: u64, callers: usize, caller: usize) -> u64 {
    calls / callers as u64 + ((caller as u64) < calls % callers as u64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (calls, callers) in [(10, 3), (7, 7), (2, 5), (4096, 32)] {
            let shares: Vec<u64> = (0..callers).map(|caller| share(calls, callers, caller)).collect();
            assert_eq!(shares.iter().sum::<u64>(), calls);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn no_two_requests_are_the_same_and_none_is_its_answer() {
        assert_ne!(request(1, 0), request(0, 1));
        assert_ne!(request(3, 7), answer(request(3, 7)));
    }
}
