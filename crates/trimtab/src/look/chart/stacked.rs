//! A stack over requests: what fills the window, kind by kind, with lines at the limits and marks at what happened.

use maud::{Markup, html};

use super::{
    ChartAxis,
    axis::{PlotArea, coordinate, position},
    chart_figure,
};

/// Units of a picture for each point that is drawn. Of each group of neighbouring points the largest is drawn.
const POINT_WIDTH: f64 = 2.0;

/// Layers above each other, one value of each for every request.
pub(crate) struct StackedChart<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: String,
    /// From the bottom to the top; at most eight.
    pub(crate) layers: Vec<StackLayer>,
    /// What is written below.
    pub(crate) x_label: &'a str,
    pub(crate) y_label: &'a str,
    /// How a value is written.
    pub(crate) write: fn(f64) -> String,
    pub(crate) levels: Vec<LevelLine>,
    pub(crate) marks: Vec<ChartMark>,
}

/// One kind.
pub(crate) struct StackLayer {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

/// A limit.
pub(crate) struct LevelLine {
    pub(crate) name: String,
    pub(crate) at: f64,
}

/// Something that happened at a request, counted from 0.
pub(crate) struct ChartMark {
    pub(crate) at: usize,
    pub(crate) shape: MarkShape,
    pub(crate) title: String,
}

/// How a mark looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkShape {
    /// A dotted line: the provider's cache was cold.
    Line,
    /// A triangle: something was hidden.
    Triangle,
    /// A diamond: the beginning was replaced by a summary.
    Diamond,
}

impl MarkShape {
    fn name(self) -> &'static str {
        match self {
            MarkShape::Line => "cold cache",
            MarkShape::Triangle => "blocks hidden",
            MarkShape::Diamond => "folded",
        }
    }
}

/// Returns the picture of a stack.
pub(crate) fn stacked_chart(chart: &StackedChart<'_>) -> Markup {
    let highest = (0..request_count(chart)).map(|index| total_at(chart, index)).fold(0.0, f64::max);
    // A limit far above everything would flatten the stack: it is named in the legend, and not drawn.
    let drawn_levels: Vec<&LevelLine> =
        chart.levels.iter().filter(|level| level.at <= highest * 2.5).collect();
    let draw = |area: &PlotArea| draw_stack(chart, &drawn_levels, highest, *area);
    let areas = [&PlotArea::WIDE, &PlotArea::NARROW];
    chart_figure(chart.title, &chart.description, areas, draw, &legend(chart, &drawn_levels))
}

fn request_count(chart: &StackedChart<'_>) -> usize {
    chart.layers.iter().map(|layer| layer.values.len()).max().unwrap_or_default()
}

fn value_at(layer: &StackLayer, index: usize) -> f64 {
    layer.values.get(index).copied().unwrap_or_default()
}

fn total_at(chart: &StackedChart<'_>, index: usize) -> f64 {
    chart.layers.iter().map(|layer| value_at(layer, index)).sum()
}

fn draw_stack(chart: &StackedChart<'_>, levels: &[&LevelLine], highest: f64, area: PlotArea) -> Markup {
    let count = request_count(chart);
    let most = trimtab_core::Tokens(1).scale((area.width - area.left - area.right) / POINT_WIDTH).0;
    let shown =
        thin_points(count, usize::try_from(most).unwrap_or(usize::MAX), |index| total_at(chart, index));
    let top = levels.iter().map(|level| level.at).fold(highest, f64::max) * 1.05;
    let x = ChartAxis::new(chart.x_label, 1.0, position(count.max(2)), |number| format!("{number:.0}"));
    let y = ChartAxis::new(chart.y_label, 0.0, top, chart.write);
    let area = &area.with_room_beside(&y);
    let place = |index: usize, height: f64| {
        let (x, y) = (area.place_x(&x, position(index) + 1.0), area.place_y(&y, height));
        format!("{} {}", coordinate(x), coordinate(y))
    };
    let mut below = vec![0.0; shown.len()];
    let mut layers = Vec::new();
    for (number, layer) in (1..).zip(&chart.layers) {
        let above: Vec<f64> =
            shown.iter().zip(&below).map(|(index, below)| below + value_at(layer, *index)).collect();
        let up = shown.iter().zip(&above).map(|(index, height)| place(*index, *height));
        let back = shown.iter().zip(&below).rev().map(|(index, height)| place(*index, *height));
        let outline: Vec<String> = up.chain(back).collect();
        layers.push((number, format!("M{}Z", outline.join("L")), &layer.name));
        below = above;
    }
    let floor = area.height - area.bottom;
    html! {
        (area.draw_axes(&x, &y))
        @for (number, outline, name) in &layers {
            path class={ "k" (number) } d=(outline) { title { (name) } }
        }
        @for level in levels {
            @let at = area.place_y(&y, level.at);
            line.level x1=(coordinate(area.left)) x2=(coordinate(area.width - area.right)) y1=(coordinate(at)) y2=(coordinate(at)) {}
            text.name x=(coordinate(area.left + 6.0)) y=(coordinate(at - 5.0)) { (level.name) " " ((chart.write)(level.at)) }
        }
        @for mark in &chart.marks {
            (draw_mark(mark, area.place_x(&x, position(mark.at) + 1.0), area.top, floor))
        }
    }
}

/// Draws a mark: lines over the whole height, other shapes at the top.
fn draw_mark(mark: &ChartMark, x: f64, top: f64, floor: f64) -> Markup {
    let at = |dx: f64, dy: f64| format!("{} {}", coordinate(x + dx), coordinate(top + dy));
    html! {
        @match mark.shape {
            MarkShape::Line => {
                line.cold x1=(coordinate(x)) x2=(coordinate(x)) y1=(coordinate(top)) y2=(coordinate(floor)) { title { (mark.title) } }
            }
            MarkShape::Triangle => {
                path.mark d={ "M" (at(-6.0, -13.0)) "L" (at(6.0, -13.0)) "L" (at(0.0, -2.0)) "Z" } { title { (mark.title) } }
            }
            MarkShape::Diamond => {
                path.mark d={ "M" (at(0.0, -16.0)) "L" (at(7.0, -8.0)) "L" (at(0.0, 0.0)) "L" (at(-7.0, -8.0)) "Z" } { title { (mark.title) } }
            }
        }
    }
}

fn legend(chart: &StackedChart<'_>, drawn: &[&LevelLine]) -> Markup {
    let mut shapes: Vec<MarkShape> = chart.marks.iter().map(|mark| mark.shape).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let undrawn = chart.levels.iter().filter(|level| drawn.iter().all(|drawn| drawn.name != level.name));
    html! {
        ul.legend {
            @for (number, layer) in (1..).zip(&chart.layers) {
                li {
                    svg viewBox="0 0 14 14" aria-hidden="true" { rect class={ "k" (number) } width="14" height="14" rx="3" {} }
                    (layer.name)
                }
            }
            @for shape in shapes {
                li {
                    svg viewBox="0 0 14 14" aria-hidden="true" {
                        @match shape {
                            MarkShape::Line => line.cold x1="7" x2="7" y1="0" y2="14" {},
                            MarkShape::Triangle => path.mark d="M1 2L13 2L7 13Z" {},
                            MarkShape::Diamond => path.mark d="M7 0L14 7L7 14L0 7Z" {},
                        }
                    }
                    (shape.name())
                }
            }
            @for level in undrawn { li.soft { (level.name) ": " ((chart.write)(level.at)) ", far above" } }
        }
    }
}

/// Returns which of so many points are drawn: the first, the last, and of each group of neighbours the largest.
fn thin_points(count: usize, most: usize, size: impl Fn(usize) -> f64) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let every = count.div_ceil(most);
    let largest = |start: usize| {
        let group = start..(start + every).min(count);
        group.max_by(|one, other| size(*one).total_cmp(&size(*other))).unwrap_or(start)
    };
    let mut shown: Vec<usize> = (0..count).step_by(every).map(largest).collect();
    shown.extend([0, count - 1]);
    shown.sort_unstable();
    shown.dedup();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(requests: usize) -> String {
        let layer = |name: &str, each: f64| StackLayer {
            name: name.to_owned(),
            values: (0..requests).map(|index| each * position(index + 1)).collect(),
        };
        let chart = StackedChart {
            title: "Context",
            description: "It grows.".to_owned(),
            layers: vec![layer("system", 1.0), layer("<results>", 9.0)],
            x_label: "request",
            y_label: "tokens",
            write: |number| format!("{number:.0}"),
            levels: vec![
                LevelLine { name: "budget".to_owned(), at: 10.0 * position(requests) },
                LevelLine { name: "window".to_owned(), at: 1e9 },
            ],
            marks: vec![ChartMark { at: 1, shape: MarkShape::Triangle, title: "2 blocks".to_owned() }],
        };
        stacked_chart(&chart).into_string()
    }

    #[test]
    fn a_stack_has_a_layer_for_each_kind_and_names_its_limits() {
        let picture = check(10);
        assert!(picture.contains("class=\"k1\"") && picture.contains("class=\"k2\""));
        assert!(picture.contains("&lt;results&gt;") && !picture.contains("<results>"));
        assert!(picture.contains("budget 100") && picture.contains("window: 1000000000, far above"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn long_sessions_are_thinned_and_empty_ones_drawn() {
        assert!(check(20_000).len() < 60_000, "{}", check(20_000).len());
        for few in [0, 1, 2] {
            assert!(!check(few).contains("NaN"));
        }
        // The first, and one of each ten: the last of those that are equal, so that the last of all is among them.
        assert_eq!(thin_points(1000, 10, |index| if index == 555 { 1.0 } else { 0.0 }).len(), 11);
        assert!(thin_points(1000, 10, |index| if index == 555 { 1.0 } else { 0.0 }).contains(&555));
    }
}
