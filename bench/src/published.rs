//! The published figures: one CSV per experiment in `bench/published/`, each with its source on every row.
//!
//! The files are part of the program, so a figure that somebody mistypes fails a test and not a run. The dialect is the
//! small one we write: `#` comments, a heading line, cells without line breaks, quotes around cells that hold commas.

use crate::results::Published;

/// The rows of one experiment: key cells, then the value and its source.
#[derive(Clone, Debug)]
pub struct Figures {
    rows: Vec<(Vec<String>, Published)>,
}

impl Figures {
    /// Reads the text of a CSV file.
    ///
    /// # Panics
    /// If a row is malformed: the files are compiled in, and a test reads each.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows = lines.skip(1).map(|line| {
            let mut row = cells(line);
            let source = row.pop().unwrap_or_else(|| panic!("no source in `{line}`"));
            let value = row.pop().and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("no value in `{line}`"));
            (row, Published { value, source })
        });
        Self { rows: rows.collect() }
    }

    /// The figure whose key cells are `key`; a `*` cell stands for every value.
    pub fn get(&self, key: &[&str]) -> Option<Published> {
        let matches = |row: &[String]| row.len() == key.len() && row.iter().zip(key).all(|(a, b)| a == "*" || a == b);
        self.rows.iter().find(|(row, _)| matches(row)).map(|(_, published)| published.clone())
    }
}

/// The cells of one line.
pub(crate) fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is always a cell").push(character),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_every_value_and_quotes_keep_commas() {
        let figures = Figures::parse("# x\nkind,n,value,source\na,*,1.5,\"y, z\"\nb,2,7,w\n");
        assert_eq!(figures.get(&["a", "9"]), Some(Published { value: 1.5, source: "y, z".into() }));
        assert_eq!(figures.get(&["b", "2"]).unwrap().value, 7.0);
        assert_eq!(figures.get(&["b", "3"]), None);
        assert_eq!(figures.get(&["b"]), None);
    }
}
