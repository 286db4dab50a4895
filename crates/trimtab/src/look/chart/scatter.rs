//! Points in two directions, each with its name: what a policy costs against what it keeps visible. Ours are large and bold, others
//! grey, those that a provider rejects hollow. Names are placed where they cover neither a point nor each other.

use maud::{Markup, html};

use super::{
    ChartAxis,
    axis::{BOLD_LETTER, LETTER, PlotArea, coordinate, position},
    chart_figure,
};

/// Points with their axes.
pub(crate) struct ScatterChart<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: String,
    pub(crate) x: ChartAxis,
    pub(crate) y: ChartAxis,
    pub(crate) points: Vec<ScatterPoint>,
    pub(crate) zone: Option<ScatterZone>,
    /// Where a dashed line stands: the bill as it was.
    pub(crate) zero: Option<f64>,
    /// The line that nobody can cross, through its points in their order; empty where there is none.
    pub(crate) bound: Vec<(f64, f64)>,
}

/// One point.
pub(crate) struct ScatterPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) name: String,
    /// What is shown to whoever points at it.
    pub(crate) title: String,
    pub(crate) emphasis: PointEmphasis,
}

/// A part of the picture that has a name.
pub(crate) struct ScatterZone {
    pub(crate) name: String,
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

/// How a point or a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointEmphasis {
    /// Large, in the accent colour, with a bold name.
    Ours,
    /// Grey.
    Other,
    /// Hollow and red.
    Rejected,
    /// Dark: what everything is compared with.
    Reference,
}

impl PointEmphasis {
    pub(super) fn class(self) -> &'static str {
        match self {
            PointEmphasis::Ours => "ours",
            PointEmphasis::Other => "other",
            PointEmphasis::Rejected => "rejected",
            PointEmphasis::Reference => "reference",
        }
    }

    fn radius(self) -> f64 {
        match self {
            PointEmphasis::Ours => 8.0,
            PointEmphasis::Rejected => 5.5,
            PointEmphasis::Other | PointEmphasis::Reference => 5.0,
        }
    }
}

/// Returns the picture of points.
pub(crate) fn scatter_chart(chart: &ScatterChart<'_>) -> Markup {
    let areas =
        [PlotArea { height: 420.0, ..PlotArea::WIDE }, PlotArea { height: 380.0, ..PlotArea::NARROW }];
    let areas = areas.map(|area| area.with_room_beside(&chart.y));
    let [wide, narrow] = &areas;
    let legend = html! {
        @for (class, area) in [("wide-only", wide), ("narrow-only", narrow)] {
            @let unnamed = place_names(chart, area).unnamed;
            @if !unnamed.is_empty() {
                div class=(class) {
                    p.small.soft { "Not named in the picture:" }
                    ul.small { @for point in unnamed { li { (point.title) } } }
                }
            }
        }
    };
    chart_figure(chart.title, &chart.description, [wide, narrow], |area| draw_points(chart, area), &legend)
}

/// Names of points with their places, and the points for whose names there is no room.
struct PlacedNames<'a> {
    names: Vec<(&'a ScatterPoint, LabelBox)>,
    unnamed: Vec<&'a ScatterPoint>,
}

fn place_names<'a>(chart: &'a ScatterChart<'_>, area: &PlotArea) -> PlacedNames<'a> {
    let mut boxes: Vec<LabelBox> = chart
        .points
        .iter()
        .map(|point| LabelBox::around(place_of(point, chart, area), point.emphasis.radius()))
        .collect();
    boxes.extend(chart.zone.as_ref().map(|zone| zone_name_place(zone, chart, area)));
    // Ours are named first, so that they have the best places.
    let mut order: Vec<&ScatterPoint> = chart.points.iter().collect();
    order.sort_by_key(|point| point.emphasis != PointEmphasis::Ours);
    let mut placed = PlacedNames { names: Vec::new(), unnamed: Vec::new() };
    for point in order {
        match find_label_place(place_of(point, chart, area), point, &boxes, area) {
            Some(label) => {
                boxes.push(label);
                placed.names.push((point, label));
            }
            None => placed.unnamed.push(point),
        }
    }
    placed
}

fn place_of(point: &ScatterPoint, chart: &ScatterChart<'_>, area: &PlotArea) -> (f64, f64) {
    (area.place_x(&chart.x, point.x), area.place_y(&chart.y, point.y))
}

/// Returns where the name of a zone stands: in its lower left corner.
fn zone_name_place(zone: &ScatterZone, chart: &ScatterChart<'_>, area: &PlotArea) -> LabelBox {
    let (left, bottom) = (area.place_x(&chart.x, zone.x.0) + 5.0, area.place_y(&chart.y, zone.y.0));
    let right = left + position(zone.name.chars().count()) * LETTER;
    LabelBox { left, top: bottom - 17.0, right, bottom }
}

fn draw_points(chart: &ScatterChart<'_>, area: &PlotArea) -> Markup {
    let names = place_names(chart, area).names;
    let corners = chart.bound.iter().map(|(x, y)| {
        format!("{} {}", coordinate(area.place_x(&chart.x, *x)), coordinate(area.place_y(&chart.y, *y)))
    });
    let outline = format!("M{}", corners.collect::<Vec<_>>().join("L"));
    html! {
        @if let Some(zone) = &chart.zone {
            @let (left, right) = (area.place_x(&chart.x, zone.x.0), area.place_x(&chart.x, zone.x.1));
            @let (top, bottom) = (area.place_y(&chart.y, zone.y.1), area.place_y(&chart.y, zone.y.0));
            rect.zone x=(coordinate(left)) y=(coordinate(top)) width=(coordinate(right - left)) height=(coordinate(bottom - top)) {}
        }
        (area.draw_axes(&chart.x, &chart.y))
        @if let Some(zone) = &chart.zone {
            @let name = zone_name_place(zone, chart, area);
            text.name.good x=(coordinate(name.left)) y=(coordinate(name.bottom - 5.0)) { (zone.name) }
        }
        @if let Some(zero) = chart.zero {
            @let x = area.place_x(&chart.x, zero);
            line.zero x1=(coordinate(x)) x2=(coordinate(x)) y1=(coordinate(area.top)) y2=(coordinate(area.height - area.bottom)) {}
        }
        @if chart.bound.len() > 1 {
            path.line.reference d=(outline) { title { "with hindsight" } }
        }
        @for point in &chart.points {
            @let (x, y) = place_of(point, chart, area);
            circle class=(point.emphasis.class()) cx=(coordinate(x)) cy=(coordinate(y)) r=(coordinate(point.emphasis.radius())) {
                title { (point.title) }
            }
        }
        @for (point, label) in &names {
            text class={ "name " (point.emphasis.class()) "-label" } x=(coordinate(label.left)) y=(coordinate(label.top + 12.0)) { (point.name) }
        }
    }
}

/// The room that a name or a point takes.
#[derive(Debug, Clone, Copy)]
struct LabelBox {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl LabelBox {
    fn around((x, y): (f64, f64), radius: f64) -> LabelBox {
        LabelBox { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    fn overlaps(&self, other: &LabelBox) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Finds the first free place for a name around its point; nothing where there is none.
fn find_label_place(
    (x, y): (f64, f64),
    point: &ScatterPoint,
    taken: &[LabelBox],
    area: &PlotArea,
) -> Option<LabelBox> {
    let letter = if point.emphasis == PointEmphasis::Ours { BOLD_LETTER } else { LETTER };
    let width = position(point.name.chars().count()) * letter;
    let (gap, height) = (point.emphasis.radius() + 4.0, 15.0);
    let at = |left: f64, top: f64| LabelBox { left, top, right: left + width, bottom: top + height };
    let places = [0.0, 9.0, -9.0, 18.0, -18.0, 30.0, -30.0].into_iter().flat_map(|shift| {
        [
            at(x + gap, y - height / 2.0 + shift),
            at(x - gap - width, y - height / 2.0 + shift),
            at(x - width / 2.0, y - gap - height + shift.min(0.0)),
            at(x - width / 2.0, y + gap + shift.max(0.0)),
        ]
    });
    let is_inside = |label: &LabelBox| {
        label.left >= area.left
            && label.right <= area.width
            && label.top >= 0.0
            && label.bottom <= area.height - area.bottom
    };
    let is_free = |label: &LabelBox| taken.iter().all(|other| !label.overlaps(other));
    places.into_iter().find(|label| is_inside(label) && is_free(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_that_lie_close_do_not_cover_each_other() {
        let points = (0..12_u8).map(|number| ScatterPoint {
            x: f64::from(number % 3) * 0.01,
            y: 0.99 + f64::from(number) * 0.0005,
            name: format!("policy <{number}>"),
            title: "one of many".to_owned(),
            emphasis: if number == 0 { PointEmphasis::Ours } else { PointEmphasis::Rejected },
        });
        let area = PlotArea { height: 420.0, ..PlotArea::WIDE };
        let points: Vec<ScatterPoint> = points.collect();
        let mut taken: Vec<LabelBox> = Vec::new();
        for point in &points {
            if let Some(label) = find_label_place((300.0 + point.x * 100.0, 200.0), point, &taken, &area) {
                assert!(taken.iter().all(|other| !other.overlaps(&label)));
                taken.push(label);
            }
        }
        let chart = ScatterChart {
            title: "Cost",
            description: "Twelve points.".to_owned(),
            x: ChartAxis::new("bill", -0.3, 0.3, |number| number.to_string()),
            y: ChartAxis::new("visible", 0.7, 1.0, |number| number.to_string()),
            points,
            zone: Some(ScatterZone { name: "cheaper and safe".to_owned(), x: (-0.3, 0.0), y: (0.99, 1.0) }),
            zero: Some(0.0),
            bound: vec![(-0.4, 0.9), (-0.2, 1.0)],
        };
        let picture = scatter_chart(&chart).into_string();
        assert!(picture.contains("policy &lt;0&gt;") && picture.contains("class=\"rejected\""));
        assert!(!picture.contains("NaN") && !picture.contains("style="), "{picture}");
    }
}
