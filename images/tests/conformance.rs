//! seL4's answers on the machine: the root server of `sel4-conformance`, which knows nothing of Wakeline, in images configured as
//! seL4's test suites configure their kernel.

mod system;

use abi::label::Table;
use images::{Builder, Image, Options, RootServer};
use soc::{End, Mode};
use system::run;

fn image(name: &str, labels: Table, harts: usize) -> Image {
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    let out = Some(builder.target().join(format!("images/{name}.elf")));
    let options = Options { quiet: true, out, ..Options::default() };
    let program = builder.program("sel4-conformance", "sel4-conformance", &options);
    let mut server = RootServer::new(program.unwrap_or_else(|error| panic!("{error}")));
    server.labels = labels;
    server.kernel.root_cnode_bits = 13;
    server.machine.harts = harts;
    builder.build_root_server(&server, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs all rows; gives how many there are.
fn rows(image: &Image, mode: Mode) -> usize {
    let (end, text) = run(image, mode);
    let last = text.lines().last().unwrap_or_default();
    assert!(end == End::Exit(0) && last.ends_with(" rows, 0 failed"), "{end:?}\n{text}");
    let count = last.split(' ').nth(1).and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("no count in `{last}`"))
}

#[test]
fn a_up_kernel_answers_as_sel4() {
    let image = image("conformance-up", Table::Up, 1);
    let count = rows(&image, Mode::Fast);
    assert!(count > 600, "rows went missing: {count}");
    assert_eq!(rows(&image, Mode::Timed), count);
}

#[test]
fn a_smp_kernel_answers_as_sel4() {
    let image = image("conformance-smp", Table::Smp, 2);
    let count = rows(&image, Mode::Fast);
    assert!(count > 600, "rows went missing: {count}");
    assert_eq!(rows(&image, Mode::Timed), count);
}
