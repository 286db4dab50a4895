//! Arguments about whose conversations are seen.

use clap::Args as ClapArgs;

use super::StorePathArgs;

/// Whose conversations are seen.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct StoreViewArgs {
    #[command(flatten)]
    pub(crate) store: StorePathArgs,

    /// Use this project: a folder in it, or its name [default: the project of the current folder]
    #[arg(long, value_name = "DIR|NAME", env = "TRIMTAB_PROJECT")]
    pub(crate) project: Option<String>,

    /// Use the sessions of all projects
    #[arg(long)]
    pub(crate) all: bool,
}

/// How long conversations are kept.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct KeepLimitArgs {
    /// Delete sessions this long after their last request: 30d, 4w [default: never]
    #[arg(long, value_name = "AGE", env = "TRIMTAB_KEEP_FOR", value_parser = super::parse_long_age)]
    pub(crate) keep_for: Option<i64>,

    /// Delete the oldest sessions while the store is larger than this: 2GB, 500MB [default: never]
    #[arg(long, value_name = "SIZE", env = "TRIMTAB_KEEP_AT_MOST", value_parser = super::parse_size)]
    pub(crate) keep_at_most: Option<u64>,
}
