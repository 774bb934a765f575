//! Tables for people: right-aligned columns under headings, grouped by a heading row, with a dim row of published figures
//! below a row of ours.
//!
//! Colours are for terminals only: the text is the same without them.

use std::io::IsTerminal as _;

/// Whether escape sequences may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// To a person's terminal.
    On,
    /// To a file or a pipe.
    Off,
}

impl Colour {
    /// What suits standard output: on for a terminal, unless `NO_COLOR` is set (no-color.org).
    pub fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !unwanted { Self::On } else { Self::Off }
    }

    /// `text` in the style of `code` (an SGR parameter).
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::On if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ours,
    Published,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    notes: Vec<String>,
    groups: Vec<(String, usize)>,
    headings: Vec<String>,
    rows: Vec<(Kind, Vec<String>)>,
}

impl Table {
    /// An empty table; each group of columns has a common heading above those of its columns.
    pub fn new(title: &str, groups: &[(&str, &[&str])]) -> Self {
        Self {
            title: title.to_owned(),
            notes: Vec::new(),
            groups: groups.iter().map(|(name, columns)| ((*name).to_owned(), columns.len())).collect(),
            headings: groups.iter().flat_map(|(_, columns)| columns.iter().map(|name| (*name).to_owned())).collect(),
            rows: Vec::new(),
        }
    }

    /// A line under the table.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// A row of our figures.
    ///
    /// # Panics
    /// If the number of cells is not that of the columns: a mistake of the caller.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "cells of `{}`", self.title);
        self.rows.push((Kind::Ours, cells));
    }

    /// The published figures of the row above; left out if none of its cells says anything.
    ///
    /// # Panics
    /// As [`Table::row`].
    pub fn published(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "cells of `{}`", self.title);
        if cells[1..].iter().any(|cell| !cell.is_empty()) {
            self.rows.push((Kind::Published, cells));
        }
    }

    /// The text of the table.
    pub fn render(&self, colour: Colour) -> String {
        let columns = self.columns();
        let mut groups = String::new();
        let mut rest = columns.as_slice();
        for (name, count) in &self.groups {
            let (span, after) = rest.split_at(*count);
            let width = span_width(span);
            groups += &format!("{:gap$}{name:^width$}", "", gap = span[0].gap);
            rest = after;
        }
        let mut text = format!("{}\n\n", colour.paint("1", &self.title));
        text += &format!("{}\n", colour.paint("1", groups.trim_end()));
        text += &format!("{}\n", colour.paint("1", &line(&self.headings, &columns)));
        for (kind, cells) in &self.rows {
            let line = line(cells, &columns);
            text += &match kind {
                Kind::Ours => line,
                Kind::Published => colour.paint("2", &line),
            };
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("  {}\n", colour.paint("2", note));
        }
        text
    }

    /// The place of each column: as wide as its widest cell, with room for the heading of its group.
    fn columns(&self) -> Vec<Column> {
        let rows = || self.rows.iter().map(|(_, cells)| cells).chain(std::iter::once(&self.headings));
        let mut columns: Vec<Column> = (0..self.headings.len())
            .map(|column| rows().map(|cells| cells[column].chars().count()).max().unwrap_or(0))
            .map(|width| Column { gap: GAP, width })
            .collect();
        let mut first = 0;
        for (name, count) in &self.groups {
            let span = &mut columns[first..first + count];
            span[0].width += name.chars().count().saturating_sub(span_width(span));
            if first > 0 {
                span[0].gap = GROUP_GAP;
            }
            first += count;
        }
        columns
    }
}

/// Blanks between columns.
const GAP: usize = 2;
/// Blanks between groups of columns.
const GROUP_GAP: usize = 5;

/// Where a column stands.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Blanks before it.
    gap: usize,
    width: usize,
}

/// The width of neighbouring columns, without the gap before them.
fn span_width(span: &[Column]) -> usize {
    span.iter().map(|column| column.gap + column.width).sum::<usize>() - span[0].gap
}

/// One row of right-aligned cells, without blanks at its end.
fn line(cells: &[String], columns: &[Column]) -> String {
    let cells = cells.iter().zip(columns);
    let text: String = cells.map(|(cell, Column { gap, width })| format!("{:gap$}{cell:>width$}", "")).collect();
    text.trim_end().to_owned()
}

/// `value` for a table: three significant digits below a hundred, whole above, thousands set apart by a blank.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 0.9995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    let sign = if whole.starts_with('-') { "-" } else { "" };
    format!("{sign}{grouped}{fraction}")
}

/// `value`, or nothing where there is none.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

/// The ratio of two figures for a table (`0.42`), or nothing where one is missing.
pub fn ratio(of: Option<f64>, to: Option<f64>) -> String {
    match (of, to) {
        (Some(of), Some(to)) if to != 0.0 => format!("{:.2}", of / to),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.0314), "0.031");
        assert_eq!(number(0.9996), "1.00");
        assert_eq!(number(9.994), "9.99");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(1414.4), "1 414");
        assert_eq!(number(-1_234_567.0), "-1 234 567");
    }

    fn table() -> Table {
        let mut table = Table::new("T", &[("", &["n"]), ("one hart", &["a", "b"]), ("a long group", &["c"])]);
        table.row(["1", "10", "2", "3"].map(String::from).to_vec());
        table.published(["published", "8", "", ""].map(String::from).to_vec());
        table.row(["2", "1 000", "2", ""].map(String::from).to_vec());
        table.published(["published", "", "", ""].map(String::from).to_vec());
        table.note("note");
        table
    }

    #[test]
    fn columns_line_up_under_their_groups() {
        let expected = "\
T

                one hart     a long group
          n         a  b                c
          1        10  2                3
  published         8
          2     1 000  2
  note
";
        assert_eq!(table().render(Colour::Off), expected);
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let painted = table().render(Colour::On);
        let mut plain = String::new();
        let mut rest = painted.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            plain += before;
            rest = after.split_once('m').unwrap().1;
        }
        assert_eq!(plain + rest, table().render(Colour::Off));
    }
}
