//! What a loaded server does for each request: it multiplies two square matrices, as in the published experiments.

use alloc::vec::Vec;
use core::hint::black_box;

/// Two matrices and their product.
pub struct Matrices {
    order: usize,
    left: Vec<u64>,
    right: Vec<u64>,
    product: Vec<u64>,
}

impl Matrices {
    /// Matrices of `order` rows and columns; with 0 there is nothing to do.
    pub fn new(order: usize) -> Self {
        let numbers = |first: u64| (first..).take(order * order).collect();
        Self { order, left: numbers(1), right: numbers(2), product: numbers(0) }
    }

    /// Multiplies them.
    #[inline(never)] // the same code, whichever server calls it
    pub fn multiply(&mut self) {
        let Self { order, left, right, product } = self;
        for (row, results) in left.chunks_exact(*order).zip(product.chunks_exact_mut(*order)) {
            for (column, result) in results.iter_mut().enumerate() {
                let factors = right.iter().skip(column).step_by(*order);
                *result = row.iter().zip(factors).fold(0, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
            }
        }
        // Nobody reads the product; it is to be made all the same, each time.
        black_box(product);
    }

    /// Works, if there is a load at all.
    #[inline(always)] // a branch in the servers of null calls
    pub fn work(&mut self) {
        if self.order > 0 {
            self.multiply();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_right() {
        let mut matrices = Matrices::new(2);
        matrices.work();
        // | 1 2 | | 2 3 |
        // | 3 4 | | 4 5 |
        assert_eq!(matrices.product, [10, 13, 22, 29]);
        Matrices::new(0).work();
    }
}
