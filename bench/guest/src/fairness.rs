//! What `fair-client` and `fair-server` say to each other: a request is empty, and the reply's operation is the phase of the experiment.

/// Not counted yet.
pub const WARMUP: u16 = 0;
/// Counted.
pub const MEASURED: u16 = 1;
/// No more calls, please.
pub const STOP: u16 = 2;

/// The value below which `quantile` of the sorted `samples` lie; 0 if there are none.
pub fn quantile(samples: &[u64], quantile: f64) -> u64 {
    let last = samples.len().saturating_sub(1);
    samples.get((last as f64 * quantile) as usize).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<u64> = (1..=101).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|at| quantile(&samples, at)), [1, 51, 100, 101]);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
