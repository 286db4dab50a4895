//! `trimtab restore`: a request of a session that is kept, byte for byte: as the agent sent it, or as the provider got it. Never
//! overwrites a file that nobody said may be overwritten.

use anyhow::{Context, Result, bail};
use trimtab_store::Store;

use crate::{
    args::RestoreArgs,
    output::{Output, print_line, write_whole},
    scope::{Asker, StoreScope},
    store,
};

pub(crate) fn run(asked: &RestoreArgs, out: &mut Output) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    let session = scope.session_named(&asked.session)?;
    let store = scope.store();
    let requests = store.requests(session)?;
    let count = requests.len();
    let number = asked.request.map_or(Some(count), |number| usize::try_from(number).ok());
    let info = number.and_then(|number| requests.get(number.checked_sub(1)?));
    let info = info.with_context(|| {
        let asked = asked.request.unwrap_or_default();
        format!("{session}: there is no request {asked}: it has the requests 1 to {count}")
    })?;
    let request = store.request(info.id)?;
    let bytes = if asked.sent { request.sent_bytes()? } else { request.bytes };
    let Some(file) = &asked.out else { return out.write_bytes(&bytes) };
    if file.exists() && !asked.force {
        bail!("{}: exists already: name another file, or give --force to overwrite it", file.display());
    }
    write_whole(file, &bytes)?;
    let what = if asked.sent { "as it was sent to the provider" } else { "as the agent sent it" };
    let number = number.unwrap_or(count);
    print_line(format_args!(
        "{}: request {number} of {count} of {session} {what}, {}",
        file.display(),
        store::format_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    ));
    Ok(())
}
