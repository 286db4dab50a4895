//! How trimtab's pages look: one frame, one stylesheet, tiles, tables and charts, for the live page and for reports in a file.
//! Every component is a function of plain values that gives [`Markup`]. None does I/O, looks at the clock or runs a script.
//!
//! A page is put together like this:
//!
//! ```ignore
//! let main = html! {
//!     h1 { "trimtab would have saved $68 of $516 on these 39 sessions" }
//!     (tiles(&[FigureTile::new("−13.2 %", "input bill").with_tone(TileTone::Good)]))
//!     (scatter_chart(&chart))
//!     (table("All figures", &columns, &rows))
//! };
//! let page: String = page(&PageFrame::standing_alone("trimtab replay"), &main).into_string();
//! ```
//!
//! Text that comes from outside is given as `&str` or `String`, which [`maud`] escapes. Only `PreEscaped` is taken as markup, and it
//! occurs in `frame.rs` alone, for the stylesheet and trimtab's own script. Pages are shown under a policy that forbids inline
//! styles, so markup has classes and the attributes of SVG, and never `style="…"`. Classes that are there to be used are listed in
//! `style.css`, each group with a comment.

mod chart;
mod figures;
mod frame;
mod table;
mod tiles;

pub(crate) use chart::{
    AxisScale, ChartAxis, ChartLine, ChartMark, LevelLine, LineChart, MarkShape, PointEmphasis, ScatterChart,
    ScatterPoint, ScatterZone, StackLayer, StackedChart, line_chart, scatter_chart, stacked_chart,
};
pub(crate) use figures::{dollars, percent, percent_change, tokens_short};
pub(crate) use frame::{ICON, ICON_PATH, NavigationLink, PageAssets, PageFrame, STYLE, navigation, page};
pub(crate) use table::{ColumnAlignment, TableColumn, table, table_below_heading};
pub(crate) use tiles::{FigureTile, TileTone, tiles};

/// Markup that a component gave. Put into `html!`, it is not escaped again.
pub(crate) use maud::Markup;
