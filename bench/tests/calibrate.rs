//! The timing model stays calibrated: every published point is within its goal, or its deviation has a written reason.

use bench::calibrate;
use images::Builder;

#[test]
fn points_are_within_their_goals_or_explained() {
    let mut builder = Builder::new().expect("cargo lists the packages");
    let points = calibrate::measure(&mut builder).unwrap_or_else(|error| panic!("{error}")).points;
    let wrong: Vec<String> = points.iter().filter_map(|point| point.verdict().err()).collect();
    assert!(wrong.is_empty(), "{} of {} points:\n{}", wrong.len(), points.len(), wrong.join("\n"));
}
