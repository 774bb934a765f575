//! The timing model stays calibrated: every published point is within its goal, or its deviation has a written reason.

use bench::{calibrate, nic};
use images::Builder;

#[test]
fn points_are_within_their_goals_or_explained() {
    let mut builder = Builder::new().expect("cargo lists the packages");
    let points = calibrate::measure(&mut builder).unwrap_or_else(|error| panic!("{error}")).points;
    let wrong: Vec<String> = points.iter().filter_map(|point| point.verdict().err()).collect();
    assert!(wrong.is_empty(), "{} of {} points:\n{}", wrong.len(), points.len(), wrong.join("\n"));
}

/// The published transmit tables, under the board's software costs: each cell within 10 %, 2 % on average.
#[test]
fn the_nic_follows_the_published_tables() {
    let mut builder = Builder::new().expect("cargo lists the packages");
    let points = nic::measure(&mut builder).unwrap_or_else(|error| panic!("{error}")).points();
    assert_eq!(points.len(), 22 * 11 + 22 * 3, "every published cell");
    let off: Vec<_> = points.iter().filter(|point| point.error.abs() > 10.0).collect();
    assert!(off.is_empty(), "{off:#?}");
    let mean = points.iter().map(|point| point.error.abs()).sum::<f64>() / points.len() as f64;
    assert!(mean < 2.0, "mean error {mean} %");
}
