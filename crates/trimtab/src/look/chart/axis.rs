//! Axes: numbers to places in a picture, and round numbers to write beside them.

use maud::{Markup, html};

/// A picture's size and the margins around what is drawn, in its own units.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlotArea {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// One direction of a chart.
#[derive(Debug, Clone)]
pub(crate) struct ChartAxis {
    pub(crate) label: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Numbers with what is written beside them.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) scale: AxisScale,
}

/// How numbers are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AxisScale {
    /// Evenly.
    Even,
    /// Evenly around zero, ever closer beyond this distance from it: changes of −30 % and +300 % in one picture.
    Compressed { beyond: f64 },
}

impl ChartAxis {
    /// Makes an axis with round numbers beside it.
    pub(crate) fn new(
        label: impl Into<String>,
        from: f64,
        to: f64,
        write: impl Fn(f64) -> String,
    ) -> ChartAxis {
        let to = if to > from { to } else { from + 1.0 };
        let ticks = round_numbers(from, to).into_iter().map(|at| (at, write(at))).collect();
        ChartAxis { label: label.into(), from, to, ticks, scale: AxisScale::Even }
    }

    /// Sets how numbers are spread, and the numbers that are written.
    pub(crate) fn with_scale(mut self, scale: AxisScale, ticks: Vec<(f64, String)>) -> ChartAxis {
        self.scale = scale;
        self.ticks = ticks;
        self
    }

    /// Returns how far along the axis a number is, from 0 to 1.
    fn share(&self, number: f64) -> f64 {
        let spread = |number: f64| match self.scale {
            AxisScale::Even => number,
            AxisScale::Compressed { beyond } => number.signum() * (number.abs() / beyond).ln_1p(),
        };
        let (from, to) = (spread(self.from), spread(self.to));
        ((spread(number) - from) / (to - from)).clamp(0.0, 1.0)
    }
}

/// Units that a letter of a label takes on average, and those of a bold one.
pub(super) const LETTER: f64 = 7.0;
pub(super) const BOLD_LETTER: f64 = 8.6;

impl PlotArea {
    /// For a desktop: letters of 12 units are read well at the width of a page.
    pub(super) const WIDE: PlotArea =
        PlotArea { width: 900.0, height: 340.0, left: 62.0, right: 16.0, top: 22.0, bottom: 44.0 };

    /// For a phone: the same letters at less than half the width.
    pub(super) const NARROW: PlotArea =
        PlotArea { width: 400.0, height: 300.0, left: 56.0, right: 10.0, top: 22.0, bottom: 44.0 };

    /// Widens the margin on the left for what is written beside an axis, and for its name.
    pub(super) fn with_room_beside(self, y: &ChartAxis) -> PlotArea {
        /// Units for the name of the axis, which is turned, and for gaps.
        const NAME: f64 = 30.0;
        let longest = y.ticks.iter().map(|(_, words)| words.chars().count()).max().unwrap_or_default();
        PlotArea { left: self.left.max(position(longest) * LETTER + NAME), ..self }
    }

    pub(super) fn place_x(&self, axis: &ChartAxis, number: f64) -> f64 {
        self.left + axis.share(number) * (self.width - self.left - self.right)
    }

    pub(super) fn place_y(&self, axis: &ChartAxis, number: f64) -> f64 {
        self.height - self.bottom - axis.share(number) * (self.height - self.top - self.bottom)
    }

    /// Draws both axes with their lines and numbers.
    pub(super) fn draw_axes(&self, x: &ChartAxis, y: &ChartAxis) -> Markup {
        let (right, bottom) = (self.width - self.right, self.height - self.bottom);
        let (middle_x, middle_y) = ((self.left + right) / 2.0, (self.top + bottom) / 2.0);
        let turned = format!("rotate(-90 13 {})", coordinate(middle_y));
        html! {
            @for (at, words) in &y.ticks {
                @let place = self.place_y(y, *at);
                line.grid x1=(coordinate(self.left)) x2=(coordinate(right)) y1=(coordinate(place)) y2=(coordinate(place)) {}
                text.axis x=(coordinate(self.left - 7.0)) y=(coordinate(place + 4.0)) text-anchor="end" { (words) }
            }
            @for (at, _) in &x.ticks {
                @let place = self.place_x(x, *at);
                line.grid x1=(coordinate(place)) x2=(coordinate(place)) y1=(coordinate(self.top)) y2=(coordinate(bottom)) {}
            }
            @for (place, words) in self.room_for_words(x) {
                text.axis x=(coordinate(place)) y=(coordinate(bottom + 17.0)) text-anchor="middle" { (words) }
            }
            text.axis x=(coordinate(middle_x)) y=(coordinate(self.height - 7.0)) text-anchor="middle" { (x.label) }
            text.axis x="13" y=(coordinate(middle_y)) text-anchor="middle" transform=(turned) { (y.label) }
        }
    }
}

impl PlotArea {
    /// Returns what is written below an axis, with the middle of each: what would cover what is left of it is not written, and what
    /// would leave the picture is moved into it.
    fn room_for_words<'a>(&self, x: &'a ChartAxis) -> Vec<(f64, &'a str)> {
        let mut end = f64::NEG_INFINITY;
        let mut written = Vec::new();
        for (at, words) in &x.ticks {
            let half = position(words.chars().count()) * LETTER / 2.0;
            let place = self.place_x(x, *at).min(self.width - half);
            if place - half > end + LETTER {
                end = place + half;
                written.push((place, words.as_str()));
            }
        }
        written
    }
}

/// Returns about five round numbers of a range.
fn round_numbers(from: f64, to: f64) -> Vec<f64> {
    let rough = (to - from) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (from / step).ceil();
    // Counted in steps: sums of a step would drift.
    let numbers = (0..=12_u8).map(|count| (first + f64::from(count)) * step);
    numbers.take_while(|number| *number <= to + step * 1e-9).collect()
}

/// Writes a place with one decimal at most: more would be bytes that nobody sees.
pub(super) fn coordinate(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Returns a whole number as it is drawn.
pub(super) fn position(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beside_an_axis_are_round() {
        assert_eq!(round_numbers(0.0, 200_000.0), [0.0, 50_000.0, 100_000.0, 150_000.0, 200_000.0]);
        assert_eq!(round_numbers(0.7, 1.0).len(), 4);
        assert_eq!(coordinate(12.04), "12");
    }

    #[test]
    fn words_below_an_axis_do_not_cover_each_other() {
        let axis = ChartAxis::new("day", 0.0, 29.0, |_| "2026-11-19".to_owned());
        let axis = ChartAxis {
            ticks: (0..30_u8).map(|day| (f64::from(day), "2026-11-19".to_owned())).collect(),
            ..axis
        };
        for area in [PlotArea::WIDE, PlotArea::NARROW] {
            let written = area.room_for_words(&axis);
            assert!(written.len() > 2 && written.len() < 30, "{}", written.len());
            assert!(written.windows(2).all(|pair| pair[1].0 - pair[0].0 > 10.0 * LETTER), "{written:?}");
            assert!(written.iter().all(|(place, _)| place + 5.0 * LETTER <= area.width), "{written:?}");
        }
    }

    #[test]
    fn a_compressed_axis_keeps_order_and_the_middle() {
        let axis = ChartAxis::new("bill", -0.3, 3.0, |number| number.to_string())
            .with_scale(AxisScale::Compressed { beyond: 0.1 }, Vec::new());
        let shares = [-0.3, -0.1, 0.0, 0.1, 1.0, 3.0].map(|number| axis.share(number));
        assert!(shares.is_sorted() && shares[0] == 0.0 && shares[5] == 1.0, "{shares:?}");
        assert!(shares[4] > 0.6, "most of the room is for what is near zero: {shares:?}");
    }
}
