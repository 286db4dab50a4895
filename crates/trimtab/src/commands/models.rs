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
    args::Models,
    output::{Output, grouped},
};

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    model: Model,
    exact: bool,
}

pub(crate) fn run(asked: &Models, out: &mut Output) -> Result<()> {
    let wanted = asked.filter.as_deref().unwrap_or_default().to_lowercase();
    let fits = |model: &Model| model.name.contains(&wanted) || model.provider.contains(&wanted);
    let rows: Vec<Row> =
        crate::prices::models()?.iter().filter(|model| fits(model)).cloned().map(row).collect();
    if asked.json {
        return out.json(&rows);
    }
    if rows.is_empty() {
        bail!("no model's name contains {wanted:?}; `trimtab models` lists all");
    }
    out.line(format_args!("Prices in US dollars per million tokens, {}", prices_date()))?;
    out.line("")?;
    out.line(format_args!(
        "{:26} {:10} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7}  {}",
        "model", "provider", "window", "max output", "input", "cached", "write", "output", "tokens"
    ))?;
    for Row { model, exact } in &rows {
        let prices = &model.prices;
        out.line(format_args!(
            "{:26} {:10} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7}  {}",
            model.name,
            model.provider,
            grouped(model.window.0),
            model.max_output.map_or_else(|| "-".to_owned(), |tokens| grouped(tokens.0)),
            prices.input,
            prices.cache_read,
            prices.cache_write,
            prices.output,
            if *exact { "exact" } else { "estimate" }
        ))?;
    }
    Ok(())
}

fn row(model: Model) -> Row {
    let exact = Tokenizer::for_model(&model.name).exactness() == Exactness::Exact;
    Row { model, exact }
}
