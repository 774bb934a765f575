//! Figures: line charts as SVG, ours solid, the published ones dashed in the same colour.
//!
//! An SVG holds its words as text, so the file does not depend on the fonts of the host that wrote it; with the same
//! points it is the same to the byte, and a committed figure that changes is a changed result.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height; all lengths are pixels.
const SIZE: (u32, u32) = (900, 460);
/// Width of the legend, right of the chart, where no line can run into it.
const LEGEND_WIDTH: u32 = 210;
/// Length of a line's sample in the legend.
const LEGEND_STROKE: i32 = 30;
const FONT: &str = "Helvetica, Arial, sans-serif";
/// Okabe and Ito's palette without yellow: told apart by colour-blind readers, and on white.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// The scale of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From nothing: lengths compare.
    Linear,
    /// Ratios compare.
    Logarithmic,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Which colour of the palette; a dashed line takes that of its counterpart.
    pub colour: usize,
    /// Drawn thin and dashed: a published line, or a second quantity of the same thing.
    pub dashed: bool,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
}

/// A line chart over a doubling axis (concurrency, connections).
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above the chart.
    pub title: String,
    /// Under the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// The vertical scale.
    pub scale: Scale,
    /// The lines; those without points are left out.
    pub lines: Vec<Line>,
}

/// A chart could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw \"{title}\": {reason}")]
pub struct FigureError {
    title: String,
    reason: String,
}

impl Chart {
    /// The chart as the text of an SVG file.
    ///
    /// # Errors
    /// If there is no point, a point that is not finite, or one that the scale cannot show.
    pub fn svg(&self) -> Result<String, FigureError> {
        let error = |reason: String| FigureError { title: self.title.clone(), reason };
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let lowest = if self.scale == Scale::Linear { 0.0 } else { f64::MIN_POSITIVE };
        if points().next().is_none() {
            return Err(error("no points".into()));
        }
        if let Some(bad) = points().find(|(x, y)| !(x.is_finite() && *x > 0.0 && y.is_finite() && *y >= lowest)) {
            return Err(error(format!("a point at {bad:?}")));
        }
        let mut text = String::new();
        self.draw(&mut text).map_err(|drawing| error(drawing.to_string()))?;
        text.push('\n');
        Ok(text)
    }

    /// Draws into `text`; the points have been checked.
    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error + '_>> {
        let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (plot, legend) = root.split_horizontally(SIZE.0 - LEGEND_WIDTH);
        let x = Axis::doubling(self.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)));
        let y = Axis::of(self.scale, self.lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)));
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, (FONT, 20).into_font().color(&INK))
            .margin(14)
            .margin_right(20)
            .x_label_area_size(46)
            .y_label_area_size(76)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| number(*y))
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK.stroke_width(1))
            .axis_desc_style((FONT, 15).into_font().color(&INK))
            .label_style((FONT, 14).into_font().color(&INK))
            .draw()?;
        for (row, line) in self.lines.iter().filter(|line| !line.points.is_empty()).enumerate() {
            let colour = PALETTE[line.colour % PALETTE.len()];
            let points = line.points.iter().copied();
            let y = 62 + 22 * row as i32;
            let sample = [(0, y), (LEGEND_STROKE, y)];
            if line.dashed {
                let style = colour.stroke_width(1);
                chart.draw_series(DashedLineSeries::new(points, 5, 4, style))?;
                legend.draw(&DashedPathElement::new(sample, 5, 4, style))?;
            } else {
                let style = colour.stroke_width(3);
                chart.draw_series(LineSeries::new(points.clone(), style))?;
                chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?;
                legend.draw(&PathElement::new(sample, style))?;
                legend.draw(&Circle::new((LEGEND_STROKE / 2, y), 4, colour.filled()))?;
            }
            let text = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            legend.draw(&Text::new(line.name.as_str(), (LEGEND_STROKE + 8, y), text))?;
        }
        root.present()?;
        Ok(())
    }
}

/// An axis with the ticks that we want, not those that a library finds.
#[derive(Clone, Debug)]
struct Axis {
    logarithmic: bool,
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Axis {
    /// From the first to the last power of two around `values`, a tick on each, with a little room at both ends.
    fn doubling(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        let (first, last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
        let ticks: Vec<f64> = (first..=last).map(|power| 2f64.powi(power)).collect();
        Self { logarithmic: true, range: ticks[0] * 0.88..ticks[ticks.len() - 1] * 1.14, ticks }
    }

    /// An axis that holds `values`, with ticks on round numbers (1, 2 or 5 times a power of ten).
    fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        match scale {
            Scale::Linear => {
                let step = round_step((high / 6.0).max(f64::MIN_POSITIVE));
                let count = (high * 1.02 / step).ceil() as u32;
                let ticks: Vec<f64> = (0..=count).map(|index| f64::from(index) * step).collect();
                Self { logarithmic: false, range: 0.0..ticks[ticks.len() - 1], ticks }
            }
            Scale::Logarithmic => {
                let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
                let round: Vec<f64> =
                    decades.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power))).collect();
                let first = round.iter().rposition(|tick| *tick <= low * 0.98).unwrap_or(0);
                let last = round.iter().position(|tick| *tick >= high * 1.02).unwrap_or(round.len() - 1);
                let ticks = round[first..=last].to_vec();
                Self { logarithmic: true, range: ticks[0]..ticks[ticks.len() - 1], ticks }
            }
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = |value: f64| if self.logarithmic { value.ln() } else { value };
        let (start, end) = (place(self.range.start), place(self.range.end));
        let part = (place(*value) - start) / (end - start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The least and the greatest of `values`, of which there is one at least.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The least of 1, 2, 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powi(least.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// A tick's number: without a fraction that says nothing, thousands set apart by a thin blank.
fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.abs() < 10_000.0 {
        return rounded.to_string();
    }
    let digits = format!("{rounded:.0}");
    let (head, tail) = digits.split_at(digits.len() - 3);
    format!("{head}\u{202f}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, points: &[(f64, f64)]) -> Chart {
        let line = |name: &str, dashed, points: &[(f64, f64)]| Line {
            name: name.into(),
            colour: 0,
            dashed,
            points: points.to_vec(),
        };
        Chart {
            title: "T".into(),
            x: "n".into(),
            y: "cycles".into(),
            scale,
            lines: vec![line("ours", false, points), line("theirs", true, points), line("none", false, &[])],
        }
    }

    #[test]
    fn the_same_points_draw_the_same_bytes() {
        let points = [(1.0, 10_500.0), (2.0, 5_930.0), (32.0, 1_670.0)];
        let svg = chart(Scale::Logarithmic, &points).svg().unwrap();
        assert_eq!(svg, chart(Scale::Logarithmic, &points).svg().unwrap());
        assert_eq!(svg.matches("<circle").count(), 4, "one mark for each of our points, one in the legend");
        assert!(svg.contains("theirs") && !svg.contains(">\nnone"));
    }

    #[test]
    fn a_point_that_cannot_be_drawn_is_refused() {
        assert!(chart(Scale::Linear, &[]).svg().is_err());
        assert!(chart(Scale::Linear, &[(1.0, 0.0)]).svg().is_ok());
        assert!(chart(Scale::Logarithmic, &[(1.0, 0.0)]).svg().is_err());
        assert!(chart(Scale::Linear, &[(1.0, f64::NAN)]).svg().is_err());
    }

    #[test]
    fn ticks_are_round_and_hold_the_points() {
        let axis = Axis::of(Scale::Linear, [3.0, 2_090.0].into_iter());
        assert_eq!(axis.ticks, [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]);
        let axis = Axis::of(Scale::Logarithmic, [1_370.0, 19_420.0].into_iter());
        assert_eq!(axis.ticks, [1e3, 2e3, 5e3, 1e4, 2e4]);
        assert_eq!(Axis::doubling([1.0, 32.0].into_iter()).ticks, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    }
}
