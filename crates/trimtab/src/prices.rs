//! Models with the user's own prices. Takes the file that `TRIMTAB_PRICES` names, or `prices.toml` in the user's folder of
//! settings; gives the table in which its rows win. Never asks anyone for a price.

use std::{path::PathBuf, sync::OnceLock};

use anyhow::{Context, Result, anyhow};
use trimtab_core::{
    Model,
    prices::{find_model_in, local_model, models_with},
};

use crate::settings;

/// Returns every model, those of the user's file first.
pub(crate) fn models() -> Result<&'static [Model]> {
    static TABLE: OnceLock<Result<Vec<Model>, String>> = OnceLock::new();
    let table = TABLE.get_or_init(|| read().map_err(|fault| format!("{fault:#}")));
    table.as_deref().map_err(|fault| anyhow!("{fault}"))
}

/// Finds a model, past vendor prefixes, dates, variants and case; `local:SERVER` is one that runs on this machine.
pub(crate) fn find_model(name: &str) -> Result<Model> {
    if let Some(local) = local_model(name) {
        return Ok(local?);
    }
    Ok(find_model_in(name, models()?)?)
}

/// Returns the user's file, where there is one.
pub(crate) fn path() -> Option<PathBuf> {
    let named = std::env::var_os("TRIMTAB_PRICES").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| settings::user_file("prices.toml").filter(|path| path.exists()))
}

fn read() -> Result<Vec<Model>> {
    let Some(path) = path() else { return Ok(trimtab_core::prices::models()) };
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: the prices cannot be read", path.display()))?;
    models_with(&text).with_context(|| path.display().to_string())
}
