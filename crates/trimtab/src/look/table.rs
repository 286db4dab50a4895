//! Tables that scroll sideways by themselves. Takes columns and rows of markup; gives a table in a region that a keyboard reaches.

use maud::{Markup, html};

/// What a column is.
pub(crate) struct TableColumn<'a> {
    pub(crate) name: &'a str,
    pub(crate) alignment: ColumnAlignment,
    /// What the name means, shown by the browser to whoever asks.
    pub(crate) about: Option<&'a str>,
}

/// On which side the cells of a column begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnAlignment {
    Text,
    Number,
}

impl<'a> TableColumn<'a> {
    /// Names a column of words.
    pub(crate) fn text(name: &'a str) -> TableColumn<'a> {
        TableColumn { name, alignment: ColumnAlignment::Text, about: None }
    }

    /// Names a column of numbers.
    pub(crate) fn number(name: &'a str) -> TableColumn<'a> {
        TableColumn { name, alignment: ColumnAlignment::Number, about: None }
    }

    pub(crate) fn with_about(mut self, about: &'a str) -> TableColumn<'a> {
        self.about = Some(about);
        self
    }
}

/// Returns a table; the first cell of a row names the row.
pub(crate) fn table(caption: &str, columns: &[TableColumn<'_>], rows: &[Vec<Markup>]) -> Markup {
    draw_table(&html! { caption { (caption) } }, caption, columns, rows)
}

/// Returns a table below a heading that says what it is: its caption is read out and not shown.
pub(crate) fn table_below_heading(
    caption: &str,
    columns: &[TableColumn<'_>],
    rows: &[Vec<Markup>],
) -> Markup {
    draw_table(&html! { caption.unseen { (caption) } }, caption, columns, rows)
}

fn draw_table(
    shown_caption: &Markup,
    caption: &str,
    columns: &[TableColumn<'_>],
    rows: &[Vec<Markup>],
) -> Markup {
    let is_number =
        |index: usize| columns.get(index).is_some_and(|column| column.alignment == ColumnAlignment::Number);
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (caption) ", scrolls sideways" } {
            table {
                (shown_caption)
                thead {
                    tr {
                        @for (index, column) in columns.iter().enumerate() {
                            th.number[is_number(index)] scope="col" title=[column.about] { (column.name) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 { th.number[is_number(index)] scope="row" { (cell) } }
                                @else { td.number[is_number(index)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
