//! `docs/user-interrupts.md` names a test for each duty and each weakness: they exist.

use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let page = read("docs/user-interrupts.md");
    let (mut rows, mut names) = (0, 0);
    for row in
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #") && !line.starts_with("| moment"))
    {
        rows += 1;
        let tests: Vec<&str> = row.split('`').filter(|word| word.contains("::")).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let (file, name) = test.split_once("::").expect("it has one");
            assert!(read(file).contains(&format!("fn {name}(")), "{file} has no `{name}`");
            names += 1;
        }
    }
    assert!(rows >= 24 + 12 && names > rows, "{rows} rows, {names} tests");
    (1..=24).for_each(|number| assert!(page.contains(&format!("\n| D{number} |")), "D{number} is missing"));
}
