//! `trimtab page`: the pages that a proxy shows, from the store alone. Serves them on this machine until it is asked to stop.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use trimtab_core::{RecallHint, report::SettingRow};

use super::{doctor, proxy::stop_asked};
use crate::{
    args::PageArgs,
    hint::{HintReader, absolute_path, recall_hint},
    output,
    page::{self, PageOptions, PageServer},
    proxy::start_runtime,
    settings::{SettingsFiles, keeping::resolve_secrets},
    store,
};

pub(crate) fn run(asked: &PageArgs) -> Result<()> {
    let files = SettingsFiles::read()?;
    let path = store::path(&asked.view.store)?;
    let server = PageServer::new(PageOptions {
        secrets: resolve_secrets(asked.show_secrets, &files)?,
        settings: setting_rows(&files)?,
        budget: None,
        recall: recall_for(&path),
        token: None,
        allowed_hosts: Vec::new(),
        metrics: None,
        view: Some(asked.view.clone()),
    })?;
    let server = Arc::new(server);
    start_runtime()?.block_on(async {
        let address = (Ipv4Addr::LOCALHOST, asked.port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("port {} is in use; --port PORT names another", asked.port))?;
        let stop = stop_asked()?;
        output::print_note(format_args!(
            "{}: open http://{} in a browser",
            path.display(),
            listener.local_addr()?
        ));
        page::serve(server, listener, stop).await
    })
}

fn recall_for(path: &std::path::Path) -> RecallHint {
    recall_hint(&absolute_path(path), HintReader::Neighbour)
}

/// Returns every setting in force, as `trimtab doctor --settings` lists them.
fn setting_rows(files: &SettingsFiles) -> Result<Vec<SettingRow>> {
    let mut rows = doctor::settings_in_force(files)?.rows;
    rows.extend(doctor::retention_rows(files)?);
    Ok(rows)
}
