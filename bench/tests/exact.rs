//! Exact guest cycles of a short sweep against the stored table: what a change costs or gains, as a diff.
//!
//! Not part of `cargo test`, because any change of a guest program moves some cycle; `make bench-check` runs it, and with
//! `UPDATE=1` it stores the new table.

use std::path::Path;

use bench::ipc::Sweep;
use bench::tour;

#[test]
fn cycles_are_those_of_the_stored_table() {
    let sweep = Sweep { concurrencies: vec![1, 8, 32], ..Sweep::new(true) };
    let measured = tour::measure(&[], Some(&sweep), None, false).unwrap_or_else(|error| panic!("{error}"));
    let row = |point: &bench::ipc::Point| {
        let totals = point.totals;
        format!(
            "{:15} {:5} {:2} in flight: {:3} calls, {:8} cycles, {:3} user interrupts\n",
            point.transport.name(),
            point.load.name(),
            totals.concurrency,
            totals.calls,
            totals.cycles,
            totals.client_interrupts + totals.server_interrupts
        )
    };
    let table: String = measured.ipc.iter().map(row).collect();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exact.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&stored, &table).expect("the tree can be written");
    }
    let expected = std::fs::read_to_string(&stored).unwrap_or_default();
    assert!(table == expected, "stored:\n{expected}\nmeasured:\n{table}\nIf this is meant: UPDATE=1 make bench-check");
}
