//! Lines over a common axis: sizes of a context under several policies, a figure over days.

use maud::{Markup, html};

use super::{
    ChartAxis, PointEmphasis,
    axis::{PlotArea, coordinate},
    chart_figure,
};

/// Lines with their axes.
pub(crate) struct LineChart<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: String,
    pub(crate) x: ChartAxis,
    pub(crate) y: ChartAxis,
    pub(crate) lines: Vec<ChartLine>,
}

/// One line, through its points in their order.
pub(crate) struct ChartLine {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) emphasis: PointEmphasis,
}

/// Returns the picture of lines. Each is named at its end.
pub(crate) fn line_chart(chart: &LineChart<'_>) -> Markup {
    let area = PlotArea { right: 150.0, ..PlotArea::WIDE };
    let outline = |line: &ChartLine| {
        let places = line.points.iter().map(|(x, y)| {
            format!("{} {}", coordinate(area.place_x(&chart.x, *x)), coordinate(area.place_y(&chart.y, *y)))
        });
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    };
    // Names at the ends of lines, moved apart where lines end close to each other.
    let mut ends: Vec<(f64, &ChartLine)> = chart
        .lines
        .iter()
        .filter_map(|line| Some((area.place_y(&chart.y, line.points.last()?.1), line)))
        .collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut lowest = f64::NEG_INFINITY;
    for (place, _) in &mut ends {
        *place = place.max(lowest + 14.0);
        lowest = *place;
    }
    let picture = html! {
        (area.draw_axes(&chart.x, &chart.y))
        @for line in chart.lines.iter().filter(|line| !line.points.is_empty()) {
            path class={ "line " (line.emphasis.class()) } d=(outline(line)) { title { (line.name) } }
        }
        @for (place, line) in &ends {
            text class={ "name " (line.emphasis.class()) "-label" } x=(coordinate(area.width - area.right + 6.0))
                y=(coordinate(place + 4.0)) { (line.name) }
        }
    };
    chart_figure(chart.title, &chart.description, &area, &picture, &html! {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_drawn_and_named() {
        let line = |name: &str, height: f64| ChartLine {
            name: name.to_owned(),
            points: vec![(1.0, 0.0), (2.0, height)],
            emphasis: PointEmphasis::Ours,
        };
        let chart = LineChart {
            title: "Sizes",
            description: "Two lines.".to_owned(),
            x: ChartAxis::new("request", 1.0, 2.0, |number| number.to_string()),
            y: ChartAxis::new("tokens", 0.0, 10.0, |number| number.to_string()),
            lines: vec![line("steady & co", 9.0), line("none", 9.1)],
        };
        let picture = line_chart(&chart).into_string();
        assert_eq!(picture.matches("class=\"line ours\"").count(), 2);
        assert!(picture.contains("steady &amp; co") && !picture.contains("NaN"));
    }
}
