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
    out.write_line(format_args!(
        "{:26} {:10} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7}  {}",
        "model", "provider", "window", "max output", "input", "cached", "write", "output", "tokens"
    ))?;
    for ModelRow { model, exact } in &rows {
        let prices = &model.prices;
        out.write_line(format_args!(
            "{:26} {:10} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7}  {}",
            model.name,
            model.provider,
            group_thousands(model.window.0),
            model.max_output.map_or_else(|| "-".to_owned(), |tokens| group_thousands(tokens.0)),
            prices.input,
            prices.cache_read,
            prices.cache_write,
            prices.output,
            if *exact { "exact" } else { "estimate" }
        ))?;
    }
    Ok(())
}

fn model_row(model: Model) -> ModelRow {
    let exact = Tokenizer::for_model(&model.name).exactness() == Exactness::Exact;
    ModelRow { model, exact }
}
