//! Lines over a common axis: sizes of a context under several policies, a figure over days.

use maud::{Markup, html};

use super::{
    ChartAxis, PointEmphasis,
    axis::{BOLD_LETTER, LETTER, PlotArea, coordinate, position},
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

/// The most of a picture's width that the names of its lines take.
const NAMES_SHARE: f64 = 0.36;

/// Units between the names of lines that end close to each other.
const NAME_HEIGHT: f64 = 14.0;

/// Returns the picture of lines. Each is named at its end.
pub(crate) fn line_chart(chart: &LineChart<'_>) -> Markup {
    let longest = chart.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    let with_names = |area: PlotArea| PlotArea {
        right: (position(longest) * BOLD_LETTER + 12.0).min(area.width * NAMES_SHARE),
        ..area.with_room_beside(&chart.y)
    };
    let areas = [with_names(PlotArea::WIDE), with_names(PlotArea::NARROW)];
    let [wide, narrow] = &areas;
    chart_figure(chart.title, &chart.description, [wide, narrow], |area| draw_lines(chart, area), &html! {})
}

fn draw_lines(chart: &LineChart<'_>, area: &PlotArea) -> Markup {
    let outline = |line: &ChartLine| {
        let places = line.points.iter().map(|(x, y)| {
            format!("{} {}", coordinate(area.place_x(&chart.x, *x)), coordinate(area.place_y(&chart.y, *y)))
        });
        format!("M{}", places.collect::<Vec<_>>().join("L"))
    };
    html! {
        (area.draw_axes(&chart.x, &chart.y))
        @for line in chart.lines.iter().filter(|line| !line.points.is_empty()) {
            path class={ "line " (line.emphasis.class()) } d=(outline(line)) { title { (line.name) } }
        }
        @for (place, line) in place_names(chart, area) {
            text class={ "name " (line.emphasis.class()) "-label" } x=(coordinate(area.width - area.right + 6.0))
                y=(coordinate(place + 4.0)) { (cut_name(&line.name, area.right - 8.0)) }
        }
    }
}

/// Returns the heights of names at the ends of lines, moved apart where lines end close to each other, and kept inside the picture.
fn place_names<'a>(chart: &'a LineChart<'_>, area: &PlotArea) -> Vec<(f64, &'a ChartLine)> {
    let mut ends: Vec<(f64, &ChartLine)> = chart
        .lines
        .iter()
        .filter_map(|line| Some((area.place_y(&chart.y, line.points.last()?.1), line)))
        .collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut lowest = f64::NEG_INFINITY;
    for (place, _) in &mut ends {
        *place = place.max(lowest + NAME_HEIGHT);
        lowest = *place;
    }
    let mut highest = area.height - area.bottom + NAME_HEIGHT;
    for (place, _) in ends.iter_mut().rev() {
        *place = place.min(highest - NAME_HEIGHT);
        highest = *place;
    }
    ends
}

/// Cuts a name to so many units.
fn cut_name(name: &str, room: f64) -> String {
    let fits = |letters: usize| position(letters) * LETTER <= room;
    if fits(name.chars().count()) {
        return name.to_owned();
    }
    let letters = name.chars().enumerate().take_while(|(at, _)| fits(at + 2)).map(|(_, letter)| letter);
    letters.chain(['…']).collect()
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
        assert_eq!(picture.matches("class=\"line ours\"").count(), 4, "two lines, drawn for two widths");
        assert!(picture.contains("steady &amp; co") && !picture.contains("NaN"));
    }

    #[test]
    fn names_of_lines_that_end_at_the_bottom_stay_inside() {
        let line = |number: usize| ChartLine {
            name: format!("peer:a-very-long-name-of-a-policy-{number}"),
            points: vec![(1.0, 0.0), (2.0, 0.0)],
            emphasis: PointEmphasis::Other,
        };
        let chart = LineChart {
            title: "Sizes",
            description: "Nine lines.".to_owned(),
            x: ChartAxis::new("request", 1.0, 2.0, |number| number.to_string()),
            y: ChartAxis::new("tokens", 0.0, 10.0, |number| number.to_string()),
            lines: (0..9).map(line).collect(),
        };
        for area in [PlotArea::WIDE, PlotArea::NARROW] {
            let places: Vec<f64> = place_names(&chart, &area).iter().map(|(place, _)| *place).collect();
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT - 1e-9), "{places:?}");
            assert!(places.iter().all(|place| *place <= area.height - area.bottom + 1e-9), "{places:?}");
        }
        assert_eq!(cut_name("peer:last-n-polling", 60.0), "peer:la…");
    }
}
