//! Charts as SVG: a stack over requests, lines, and points. Takes plain numbers; gives a figure with a title and a description for
//! whoever cannot see it. Nothing here is interactive: what can be followed stands in a table beside the chart.

mod axis;
mod lines;
mod scatter;
mod stacked;

pub(crate) use axis::{AxisScale, ChartAxis};
pub(crate) use lines::{ChartLine, LineChart, line_chart};
pub(crate) use scatter::{PointEmphasis, ScatterChart, ScatterPoint, ScatterZone, scatter_chart};
pub(crate) use stacked::{ChartMark, LevelLine, MarkShape, StackLayer, StackedChart, stacked_chart};

use maud::{Markup, html};

use axis::{PlotArea, coordinate};

/// Frames a picture: what it shows as a caption, what it says for screen readers, and what its colours mean. It is drawn twice, for wide
/// and for narrow windows; the stylesheet shows one of them.
fn chart_figure(
    title: &str,
    description: &str,
    [wide, narrow]: [&PlotArea; 2],
    draw: impl Fn(&PlotArea) -> Markup,
    legend: &Markup,
) -> Markup {
    let size = |area: &PlotArea| format!("0 0 {} {}", coordinate(area.width), coordinate(area.height));
    html! {
        figure {
            figcaption { (title) }
            @for (class, area) in [("chart wide", wide), ("chart narrow", narrow)] {
                svg class=(class) xmlns="http://www.w3.org/2000/svg" viewBox=(size(area)) role="img" aria-label={ (title) ". " (description) } {
                    (draw(area))
                }
            }
            (legend)
        }
    }
}
