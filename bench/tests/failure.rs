//! A guest that fails, fails the run: no result is made up, and the error names the point and the guest's exit code.

use bench::boot::{self, Boot};
use bench::error::Error;
use images::{Builder, Manifest};

#[test]
fn a_guest_that_panics_gives_no_result() {
    let mut manifest = Manifest::named("ipc").expect("the tree has it");
    manifest.rename("ipc-failing");
    for (key, value) in
        // Two calls in flight over an endpoint need two threads.
        [("channel.ipc.transport", "sync"), ("program.ipc-client.args.concurrency", "\"2\"")]
    {
        manifest.set(key, value).expect("the manifest has these tables");
    }
    let mut builder = Builder::new().expect("cargo lists the packages");
    let boot = Boot::new("failing".into(), &manifest, 1, &mut builder).unwrap_or_else(|error| panic!("{error}"));
    match boot::run(&boot) {
        Err(error @ Error::Guest { .. }) => {
            assert_eq!(error.to_string(), "failing: the guest ended with code 1; its console is above");
            assert_eq!(error.exit_code(), 1);
        }
        other => panic!("{other:?}"),
    }
}
