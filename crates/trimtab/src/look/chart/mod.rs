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

/// Frames a picture: what it shows as a caption, what it says for screen readers, and what its colours mean.
fn chart_figure(
    title: &str,
    description: &str,
    area: &PlotArea,
    picture: &Markup,
    legend: &Markup,
) -> Markup {
    let size = format!("0 0 {} {}", coordinate(area.width), coordinate(area.height));
    html! {
        figure {
            figcaption { (title) }
            div.chart tabindex="0" role="group" aria-label={ (title) ", scrolls sideways" } {
                svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) role="img" aria-label={ (title) ". " (description) } {
                    title { (title) }
                    desc { (description) }
                    (picture)
                }
            }
            (legend)
        }
    }
}
