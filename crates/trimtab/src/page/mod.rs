//! The live page: [`PageServer`] answers what a browser asks about the conversations of a store and about the proxy, if one runs in
//! this process. The proxy and `trimtab page` serve it. It reads the store when somebody looks, and writes nothing but wishes.
//!
//! `route` finds the page that a path names; each page has its own file and gives markup from the figures that the commands
//! give; `access` decides who may ask; `events` tells a page that something is new.

mod access;
mod conversation;
mod events;
mod figures;
mod files;
mod head;
mod misses;
mod now;
mod route;
mod server;
mod session;
mod session_list;
mod settings;
mod shell;
mod turn;
mod what_if;
mod wish;

pub(crate) use events::EventBody;
pub(crate) use route::{PageBody, is_page_path, wants_page};
pub(crate) use server::serve;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use anyhow::Result;
use tokio::sync::Semaphore;
use trimtab_core::{Millis, RecallHint, Tokens, report::SettingRow};
use trimtab_store::Secrets;

use crate::{
    args::StoreViewArgs,
    page::{
        access::PageTokens, conversation::ConversationCache, figures::TotalsCache, misses::MissCache,
        session_list::TitleCache, what_if::WhatIfJobs,
    },
    proxy::metrics::Metrics,
    scope::{Asker, StoreScope},
    store,
};

/// Pages that are made at the same time: others wait. Each may read a request of several megabytes.
const PAGES_AT_ONCE: usize = 4;

/// What a page server is made with.
pub(crate) struct PageOptions {
    /// Whose conversations are shown; nothing where none are kept.
    pub(crate) view: Option<StoreViewArgs>,
    /// What is covered in what is shown.
    pub(crate) secrets: Secrets,
    /// Every setting in force.
    pub(crate) settings: Vec<SettingRow>,
    /// The most tokens that a request may have, where somebody said so.
    pub(crate) budget: Option<Tokens>,
    /// How notes say that what is hidden comes back, for replays.
    pub(crate) recall: RecallHint,
    /// The token that a browser must give first; none where only this machine can ask.
    pub(crate) token: Option<String>,
    /// Host names besides addresses and `localhost`.
    pub(crate) allowed_hosts: Vec<String>,
    /// The figures of the proxy in this process.
    pub(crate) metrics: Option<Arc<Metrics>>,
}

/// Answers browsers.
pub(crate) struct PageServer {
    options: PageOptions,
    started: Millis,
    tokens: PageTokens,
    scope: Mutex<Option<Arc<StoreScope>>>,
    totals: TotalsCache,
    conversations: ConversationCache,
    misses: MissCache,
    titles: TitleCache,
    what_ifs: WhatIfJobs,
    /// How often something that works in the background came further.
    background_steps: Arc<AtomicUsize>,
    rendering: Semaphore,
    listeners: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
}

impl PageServer {
    /// Makes a server. Nothing is read before somebody asks.
    ///
    /// # Errors
    /// Says that the system gives no random numbers, without which nothing can be protected.
    pub(crate) fn new(options: PageOptions) -> Result<PageServer> {
        Ok(PageServer {
            options,
            started: store::current_time(),
            tokens: PageTokens::new()?,
            scope: Mutex::default(),
            totals: TotalsCache::default(),
            conversations: ConversationCache::default(),
            misses: MissCache::default(),
            titles: TitleCache::default(),
            what_ifs: WhatIfJobs::default(),
            background_steps: Arc::default(),
            rendering: Semaphore::new(PAGES_AT_ONCE),
            listeners: Arc::default(),
            stopping: Arc::default(),
        })
    }

    /// Ends what would keep a connection open.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns what of the store may be seen; opens it where that was not done yet, or another file has taken its place.
    ///
    /// # Errors
    /// Says that nothing is kept, or what is wrong with the store.
    fn scope(&self) -> Result<Arc<StoreScope>> {
        let Some(view) = &self.options.view else {
            anyhow::bail!("nothing is stored: the proxy was started with --no-store, --observe or --off")
        };
        let mut kept = self.scope.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scope) = kept.as_ref().filter(|scope| scope.store().is_in_place()) {
            return Ok(Arc::clone(scope));
        }
        let scope = Arc::new(StoreScope::open(view, Asker::CommandLine)?);
        *kept = Some(Arc::clone(&scope));
        Ok(scope)
    }

    /// Returns the store's file, where there is one to be.
    fn store_path(&self) -> Option<PathBuf> {
        store::path(&self.options.view.as_ref()?.store).ok()
    }

    /// Returns a text of a conversation as a page may show it: secrets covered, and what steers the direction of text made visible.
    fn shown_text(&self, text: &str) -> String {
        crate::terminal::escape_text(&self.options.secrets.cover_secrets(text)).into_owned()
    }
}
