//! `trimtab models`: the models that are known. Takes a part of a name; gives windows, prices and how their tokens
//! are counted.

use anyhow::{Result, bail};
use serde::Serialize;
use trimtab_core::{
    Model,
    count::{Exactness, Tokenizer},
    prices::prices_date,
};

use crate::{
    args::ModelsArgs,
    output::{Output, group_thousands},
};

#[derive(Serialize)]
struct ModelRow {
    #[serde(flatten)]
    model: Model,
    exact: bool,
}

pub(crate) fn run(asked: &ModelsArgs, out: &mut Output) -> Result<()> {
    let wanted = asked.filter.as_deref().unwrap_or_default().to_lowercase();
    let fits = |model: &Model| model.name.contains(&wanted) || model.provider.contains(&wanted);
    let rows: Vec<ModelRow> =
        crate::prices::models()?.iter().filter(|model| fits(model)).cloned().map(model_row).collect();
    if asked.json {
        return out.write_json(&rows);
    }
    if rows.is_empty() {
        bail!("no model's name contains {wanted:?}; `trimtab models` lists all");
    }
    out.write_line(format_args!("Prices in US dollars per million tokens, {}", prices_date()))?;
    out.write_line("")?;
    let is_wide = out.width() >= WIDE;
    out.write_line(table_line(
        is_wide,
        ["model", "provider", "window", "max output", "input", "cached", "write", "output", "tokens"],
    ))?;
    for ModelRow { model, exact } in &rows {
        let prices =
            [model.prices.input, model.prices.cache_read, model.prices.cache_write, model.prices.output];
        let [input, cached, write, output] = prices.map(|price| price.to_string());
        let largest = model.max_output.map_or_else(|| "-".to_owned(), |tokens| group_thousands(tokens.0));
        out.write_line(table_line(
            is_wide,
            [
                &model.name,
                &model.provider,
                &group_thousands(model.window.0),
                &largest,
                &input,
                &cached,
                &write,
                &output,
                if *exact { "exact" } else { "estimate" },
            ],
        ))?;
    }
    Ok(())
}

/// From so many columns on, provider and largest output are shown.
const WIDE: usize = 101;

fn table_line(is_wide: bool, cells: [&str; 9]) -> String {
    let [model, provider, window, largest, input, cached, write, output, tokens] = cells;
    let about =
        if is_wide { format!("{provider:10} {window:>10} {largest:>10}") } else { format!("{window:>10}") };
    format!("{model:26} {about} {input:>7} {cached:>7} {write:>7} {output:>7}  {tokens}")
}

fn model_row(model: Model) -> ModelRow {
    let exact = Tokenizer::for_model(&model.name).exactness() == Exactness::Exact;
    ModelRow { model, exact }
}
