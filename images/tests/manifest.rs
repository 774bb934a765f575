//! What is refused in a manifest, and how it is said: file, line, key, reason.

use images::Manifest;
use std::path::Path;

/// A good manifest; the cases below change one line of it.
const GOOD: &str = r#"[machine]
harts = 2
memory = "64M"
[program.client]
package = "apps"
bin = "hello"
priority = 100
hart = 1
[program.server]
package = "apps"
bin = "hello"
priority = 100
[channel.net]
client = "client"
server = "server"
entries = 128
arena = "64K"
"#;

fn complaint(text: &str) -> Option<String> {
    let manifest = Manifest::parse("t".into(), Path::new("t.toml"), text.into());
    let checked = manifest.and_then(|manifest| images::Builder::new()?.check(&manifest));
    checked.err().map(|error| error.to_string())
}

#[test]
fn a_good_manifest_passes() {
    assert_eq!(complaint(GOOD), None);
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let cases = [
        (
            "hart = 1",
            "hart = 1\nuntyped = \"3M\"",
            "t.toml:9: program.client.untyped: 3M is not a power of two from 4K to 64M",
        ),
        ("hart = 1", "hart = 1\nspaces = [\"x\"]", "t.toml:9: program.client.spaces: there is no program `x`"),
        ("harts = 2", "harts = 0", "t.toml:2: machine.harts: 0 is outside 1..=8"),
        ("harts = 2", "hearts = 2", "t.toml:2: unknown field `hearts`"),
        ("memory = \"64M\"", "memory = \"8M\"", "t.toml:3: machine.memory: 8M is too little; at least 32M is needed"),
        ("memory = \"64M\"", "memory = \"64 MB\"", "t.toml:3: `64 MB` is not a size"),
        ("[program.client]", "[program.\"Client 1\"]", "t.toml:4: program.Client 1: `Client 1` is not a name"),
        ("[program.client]", "[program.kernel]", "t.toml:4: program.kernel: `kernel` is taken by the system itself"),
        ("[program.client]", "[program.server]", "t.toml:9: duplicate key"),
        ("priority = 100\nhart", "priority = 255\nhart", "t.toml:7: program.client.priority: 255 is outside 1..=254"),
        ("hart = 1", "hart = 2", "t.toml:8: program.client.hart: 2 does not exist; machine.harts is 2"),
        ("hart = 1", "hart = \"x\"", "t.toml:8: invalid type: string \"x\", expected usize"),
        ("hart = 1", "threads = 0", "t.toml:8: program.client.threads: 0 is outside 1..=64"),
        ("hart = 1", "stack = 100", "t.toml:8: program.client.stack: 100 is not a multiple of 4K from 4K to 4M"),
        ("hart = 1", "heap = \"1G\"", "t.toml:8: program.client.heap: 1G is not a multiple of 4K from 4K to 256M"),
        ("hart = 1", "dma = \"1M\"", "t.toml:8: program.client.dma: 1M is not a multiple of 2M up to 64M"),
        ("hart = 1", "devices = [\"a\", \"a\"]", "t.toml:8: program.client.devices: `a` is named twice"),
        ("hart = 1", "devices = [\"a\", \"a?\"]", "t.toml:8: program.client.devices: `a` is named twice"),
        ("hart = 1", "args = { \"a b\" = \"1\" }", "program.client.args.a b: `a b` is not a name"),
        ("hart = 1", "args = { n = 1 }", "t.toml:8: invalid type: integer `1`, expected a string"),
        ("hart = 1", "main = false", "t.toml:4: program: no program is a main one"),
        (
            "hart = 1",
            "on-fault = \"ignore\"",
            "t.toml:8: unknown variant `ignore`, expected one of `stop`, `continue`, `restart`",
        ),
        (
            "package = \"apps\"\nbin = \"hello\"\npriority = 100\nhart",
            "package = \"nope\"\nbin = \"hello\"\npriority = 100\nhart",
            "t.toml:5: program.client.package: there is no package `nope` in this workspace",
        ),
        (
            "bin = \"hello\"\npriority = 100\nhart",
            "bin = \"nope\"\npriority = 100\nhart",
            "t.toml:6: program.client.bin: package `apps` has no binary `nope`; it has: ",
        ),
        (
            "client = \"client\"",
            "client = \"cleint\"",
            "t.toml:14: channel.net.client: there is no program `cleint`; there are: client, server",
        ),
        (
            "server = \"server\"",
            "server = \"client\"",
            "t.toml:15: channel.net.server: a program cannot be its own server",
        ),
        ("server = \"server\"", "", "t.toml:13: missing field `server`"),
        ("entries = 128", "entries = 100", "t.toml:16: channel.net.entries: 100 is not a power of two from 2 to 32768"),
        ("entries = 128", "transport = \"fast\"", "t.toml:16: unknown variant `fast`, expected `async` or `sync`"),
        (
            "arena = \"64K\"",
            "arena = \"1000\"",
            "t.toml:17: channel.net.arena: 1000 is not a multiple of 4K from 0 to 256M",
        ),
        ("[machine]", "[machine", "t.toml:1: "),
    ];
    for (good, bad, expected) in cases {
        assert!(GOOD.contains(good), "the good manifest lost `{good}`");
        let said = complaint(&GOOD.replacen(good, bad, 1)).unwrap_or_else(|| panic!("`{bad}` was accepted"));
        assert!(said.contains(expected), "`{bad}`:\n  said     {said}\n  expected {expected}");
        assert!(!said.contains('\n'), "`{bad}`: more than one line: {said}");
    }
}

#[test]
fn two_programs_cannot_have_one_device() {
    let text = GOOD.replace("priority = 100\n", "priority = 100\ndevices = [\"x,y\"]\n");
    let said = complaint(&text).expect("refused");
    assert!(said.contains("`x,y` is also granted to `server`; a device belongs to one program"), "{said}");
}

#[test]
fn a_changed_value_is_checked_like_the_file() {
    let mut manifest = Manifest::parse("t".into(), Path::new("t.toml"), GOOD.into()).unwrap();
    manifest.set("program.client.hart", "0").unwrap();
    manifest.set("program.client.args.count", "\"4\"").unwrap();
    let system = manifest.system().unwrap();
    assert_eq!(system.program["client"].hart, 0);
    assert_eq!(system.program["client"].args["count"], "4");

    manifest.set("program.client.hart", "7").unwrap();
    let said = manifest.system().unwrap_err().to_string();
    assert_eq!(said, "program.client.hart (set by hand): 7 does not exist; machine.harts is 2");
    manifest.set("program.client.hart", "0").unwrap();
    manifest.set("program.client.colour", "red").unwrap();
    let said = manifest.system().unwrap_err().to_string();
    assert!(said.contains("unknown field `colour`"), "{said}");
    assert!(manifest.set("machine.harts.x", "1").is_err());
}

#[test]
fn an_unknown_manifest_is_answered_with_the_known_ones() {
    let said = Manifest::named("nope").unwrap_err().to_string();
    assert!(said.starts_with("there is no manifest `nope`; there are: "), "{said}");
    assert!(said.contains("hello"));
}

#[test]
fn every_manifest_of_the_tree_is_good() {
    for name in images::manifest::names().unwrap() {
        if let Err(error) = Manifest::named(&name).and_then(|manifest| images::Builder::new()?.check(&manifest)) {
            panic!("{error}");
        }
    }
}

#[test]
fn tables_are_copied_whole() {
    let mut manifest = Manifest::parse("t".into(), Path::new("t.toml"), GOOD.into()).unwrap();
    manifest.copy("program.client", "program.other").unwrap();
    manifest.copy("channel.net", "channel.other").unwrap();
    manifest.set("channel.other.client", "other").unwrap();
    let system = manifest.system().unwrap();
    assert_eq!(system.program["other"], system.program["client"]);
    assert_eq!((system.channel.len(), system.channel["other"].client.as_str()), (2, "other"));
    assert!(manifest.copy("program.nobody", "program.x").is_err());
    assert!(manifest.copy("machine.harts", "program.x").is_err());
    assert!(manifest.copy("program.client", "machine.harts.x").is_err());
}
