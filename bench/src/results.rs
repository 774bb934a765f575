//! The record: one measured point, and the file that a run's points make.
//!
//! A results file is meant to be stored, compared and gated, so it holds nothing that could differ between two runs of the
//! same commit: no dates, no host names, no host speed. Records stand in the order in which the experiment lists its
//! points, whatever thread measured them, and a number is written as the shortest decimal that reads back as the same
//! value (`412.5`, `1414`).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The version of the file format.
pub const SCHEMA: u32 = 1;

/// The value of one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Param {
    /// A choice, by name.
    Name(String),
    /// A count.
    Count(u64),
}

impl From<&str> for Param {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<u64> for Param {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// What a reader needs to repeat a point, in the order in which the experiment names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<(&'static str, Param)>);

impl Params {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// These parameters and one more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Param>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The parameter called `name`.
    pub fn get(&self, name: &str) -> Option<&Param> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A number that prints shortest-exact: whole values without a fraction.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Up to here every whole number has its own `f64`.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() <= EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// A figure that somebody else published for the same point.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The figure, in the record's unit.
    pub value: f64,
    /// Where it stands.
    pub source: String,
}

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// What was measured; a new meaning gets a new id.
    pub id: &'static str,
    /// What repeats it.
    pub params: Params,
    /// The unit of `value` (and of `published`).
    pub unit: &'static str,
    /// The measurement.
    pub value: Number,
    /// The published figure for the same point, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Number>,
    /// Where that stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Record {
    /// The measurement `value` of `id` at `params`.
    pub fn new(id: &'static str, params: Params, unit: &'static str, value: f64) -> Self {
        Self { id, params, unit, value: Number(value), published: None, source: None }
    }

    /// The same with the published figure beside it.
    #[must_use]
    pub fn beside(mut self, published: Option<Published>) -> Self {
        if let Some(Published { value, source }) = published {
            self.published = Some(Number(value));
            self.source = Some(source);
        }
        self
    }
}

/// The machine that the figures hold for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Core clock.
    pub clock_hz: u64,
    /// Most harts that a record of the file uses.
    pub harts: u64,
    /// Memory read latency, core cycles.
    pub rl: u64,
    /// Memory write latency, core cycles.
    pub wl: u64,
}

/// A results file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    schema: u32,
    commit: String,
    image: String,
    machine: Machine,
    seed: u64,
    records: Vec<Record>,
}

impl Summary {
    /// The file of `records`, measured on `machine` with schedule seed `seed`.
    ///
    /// `images` are the images that ran, by name, with their SHA-256.
    pub fn new(
        commit: String,
        images: &[(String, [u8; 32])],
        machine: Machine,
        seed: u64,
        records: Vec<Record>,
    ) -> Self {
        Self { schema: SCHEMA, commit, image: images_digest(images), machine, seed, records }
    }

    /// The records, in their order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The text of the file: one record a line, so that two files can be compared line by line.
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"schema\": {},", json(&self.schema));
        let _ = writeln!(text, "  \"commit\": {},", json(&self.commit));
        let _ = writeln!(text, "  \"image\": {},", json(&self.image));
        let _ = writeln!(text, "  \"machine\": {},", json(&self.machine));
        let _ = writeln!(text, "  \"seed\": {},", json(&self.seed));
        text.push_str("  \"records\": [");
        for (index, record) in self.records.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n    {}", json(record));
        }
        text.push_str("\n  ]\n}\n");
        text
    }
}

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes `bytes` to `path`, whose folder exists.
///
/// # Errors
/// Names the path and what the host said.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    std::fs::write(path, bytes).map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Writes the results file `name` and prints `text`.
///
/// # Errors
/// Names the path and what the host said.
pub fn write_and_print(
    builder: &images::Builder,
    name: &str,
    summary: &Summary,
    text: &str,
) -> Result<(), crate::error::Error> {
    let folder = builder.target().join("results");
    make_folder(&folder)?;
    write_file(&folder.join(name).with_extension("json"), summary.to_json().as_bytes())?;
    // A closed pipe (`| head`) is nobody's mistake, and the results are in their file.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// Makes the folder that a file of ours goes to.
///
/// # Errors
/// Names the path and what the host said.
pub fn make_folder(path: &Path) -> Result<(), WriteError> {
    std::fs::create_dir_all(path).map_err(|source| WriteError { path: path.to_owned(), source })
}

/// One digest for the images of a run: the SHA-256 of what `sha256sum NAME.elf ...` prints for them in this order.
fn images_digest(images: &[(String, [u8; 32])]) -> String {
    use sha2::{Digest as _, Sha256};
    let mut sums = String::new();
    for (name, digest) in images {
        let _ = writeln!(sums, "{}  {name}.elf", hex(digest));
    }
    hex(&Sha256::digest(sums.as_bytes()))
}

/// `bytes` in lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The JSON text of `value`, on one line.
fn json(value: &impl Serialize) -> String {
    // Our records hold strings, finite numbers and maps with string keys; serialising those cannot fail.
    serde_json::to_string(value).expect("records serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { clock_hz: 100_000_000, harts: 2, rl: 30, wl: 20 }
    }

    #[test]
    fn a_record_is_one_line_in_the_order_of_its_params() {
        let record = Record::new(
            "ipc.round_trip",
            Params::new().with("transport", "async-smp").with("concurrency", 32).with("load", "none"),
            "cycles",
            412.5,
        )
        .beside(Some(Published { value: 1414.0, source: "reL4, Performance Evaluation".into() }));
        let summary = Summary::new("c0ffee".into(), &[], machine(), 0, vec![record]);
        let line = summary.to_json().lines().find(|line| line.contains("ipc.round_trip")).unwrap().trim().to_owned();
        assert_eq!(
            line,
            "{\"id\":\"ipc.round_trip\",\"params\":{\"transport\":\"async-smp\",\"concurrency\":32,\"load\":\"none\"},\
             \"unit\":\"cycles\",\"value\":412.5,\"published\":1414,\"source\":\"reL4, Performance Evaluation\"}"
        );
    }

    #[test]
    fn the_file_is_json() {
        let records = vec![Record::new("a", Params::new(), "u", 1.0), Record::new("b", Params::new(), "u", 0.1)];
        let text = Summary::new("c".into(), &[("x".into(), [7; 32])], machine(), 3, records).to_json();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["seed"], 3);
        assert_eq!(value["machine"]["rl"], 30);
        assert_eq!(value["records"][1]["value"], 0.1);
        assert!(value["records"][0].get("published").is_none());
    }

    #[test]
    fn numbers_are_shortest_exact() {
        let text = |value: f64| serde_json::to_string(&Number(value)).unwrap();
        assert_eq!(text(1414.0), "1414");
        assert_eq!(text(-3.0), "-3");
        assert_eq!(text(412.5), "412.5");
        assert_eq!(text(1.0 / 3.0), "0.3333333333333333");
    }

    #[test]
    fn the_digest_is_that_of_sha256sum() {
        // printf '%s  a.elf\n' $(printf '00%.0s' {1..32}) | sha256sum
        assert_eq!(
            images_digest(&[("a".into(), [0; 32])]),
            "a7c1412f9186ce5c3a914294720711e16fb228ac804f0a3f7f8f294d071949b2"
        );
        assert_ne!(images_digest(&[("a".into(), [0; 32])]), images_digest(&[("b".into(), [0; 32])]));
    }
}
