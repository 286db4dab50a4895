//! Whose conversations a command or an agent sees. Takes what was asked for and the folder; gives sessions, originals and found
//! lines of the own project. Says where more is kept, and never shows it. `docs/privacy.md` gives the reasons.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use trimtab_core::Handle;
use trimtab_store::{
    HoldingSession, RequestId, SearchHit, SearchQuery, SearchWithin, Secrets, SessionId, SessionInfo,
    SessionPage, SessionPageQuery, Sqlite, Store, StoreError, StoredRequest, current_project, project_named,
};

use crate::{args::StoreViewArgs, near::did_you_mean, output::count_with_noun, store};

/// Who asks, and with that, how more is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Somebody at the command line, who can give another flag.
    CommandLine,
    /// An agent that calls a tool. Only the user starts its server in another way.
    Agent,
}

impl Asker {
    /// Says how the conversations of all projects are included.
    fn how_to_see_all(self) -> &'static str {
        match self {
            Asker::CommandLine => "--all includes the conversations of all projects",
            Asker::Agent => {
                "only the user can include the conversations of all projects, with `trimtab mcp --all`"
            }
        }
    }
}

/// The word that stands for the session used last.
pub(crate) const LATEST: &str = "latest";

/// What of a store is seen.
pub(crate) struct StoreScope {
    store: Sqlite,
    /// The project whose sessions are seen; none for all.
    project: Option<String>,
    /// The folder of whoever asks.
    folder: Option<PathBuf>,
    asker: Asker,
}

impl StoreScope {
    /// Opens a store that is there already.
    pub(crate) fn open(asked: &StoreViewArgs, asker: Asker) -> Result<StoreScope> {
        let named = asked.project.as_deref().and_then(project_named);
        let project = if asked.all { None } else { named.or_else(current_project) };
        if project.is_none() && !asked.all {
            bail!("the current folder is not known: --project names a project, --all includes all");
        }
        let folder = env::current_dir().ok();
        Ok(StoreScope { store: store::open_existing(&asked.store)?, project, folder, asker })
    }

    pub(crate) fn store(&self) -> &Sqlite {
        &self.store
    }

    /// Returns the sessions that are seen, the newest first, and how many others there are.
    pub(crate) fn sessions(&self) -> Result<(Vec<SessionInfo>, usize)> {
        let all = self.store.sessions()?;
        let (own, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|session| self.is_own(session.scope()));
        Ok((own, others.len()))
    }

    /// Returns some of the sessions that are seen, the newest first.
    pub(crate) fn session_page(&self, asked: &SessionPageQuery<'_>) -> Result<SessionPage> {
        Ok(self.store.session_page(&SessionPageQuery { scope: self.project.as_deref(), ..*asked })?)
    }

    /// Returns a session that is seen.
    pub(crate) fn own_session(&self, id: SessionId) -> Result<SessionInfo> {
        let session = self.store.session(id)?;
        if self.is_own(session.scope()) {
            return Ok(session);
        }
        bail!(
            "session {id} belongs to another project, or its project is not known: {}{}",
            self.asker.how_to_see_all(),
            self.by_handle()
        )
    }

    /// Returns a request of a session that is seen.
    pub(crate) fn own_request(&self, session: SessionId, id: RequestId) -> Result<StoredRequest> {
        self.own_session(session)?;
        let request = self.store.request(id)?;
        if request.info.session != session {
            bail!("request {} is not of session {session}", id.0);
        }
        Ok(request)
    }

    /// Says how many sessions are not seen, and how they would be.
    pub(crate) fn about_others(&self, others: usize) -> Option<String> {
        let remedy = self.asker.how_to_see_all();
        (others > 0).then(|| {
            let (sessions, are) =
                (count_with_noun(others, "session", "sessions"), if others == 1 { "is" } else { "are" });
            format!("{sessions} of other projects or of none {are} not listed: {remedy}")
        })
    }

    /// Returns the session that a word names: its ID, `latest`, the client's name for it, or the handle of a block in it.
    pub(crate) fn session_named(&self, word: &str) -> Result<SessionId> {
        if word == LATEST {
            return self.latest_session();
        }
        if Handle::parse(word).is_some() {
            return self.holder_of(word);
        }
        if let Some(id) = SessionId::parse_name(word) {
            return self.own_session(id).map(|session| session.id);
        }
        let sessions = self.store.sessions()?;
        let is_meant = |session: &&SessionInfo| session.name.as_deref() == Some(word);
        let meant: Vec<&SessionInfo> = sessions.iter().filter(is_meant).collect();
        // Who knows the name that the client gave a conversation without a project is that client.
        let may_see = |session: &&&SessionInfo| self.is_own(session.scope()) || session.project.is_none();
        match (meant.iter().find(may_see), meant.is_empty()) {
            (Some(session), _) => Ok(session.id),
            (None, true) => {
                let seen = sessions.iter().filter(|session| self.is_own(session.scope()));
                let names: Vec<String> = seen.flat_map(|session| session.name.clone()).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let unknown = StoreError::UnknownSession(word.to_owned());
                Err(anyhow!("{unknown}{}", did_you_mean(word, &names)))
            }
            (None, false) => bail!(
                "session {word} belongs to another project, or its project is not known: {}{}",
                self.asker.how_to_see_all(),
                self.by_handle()
            ),
        }
    }

    /// Returns the session used last.
    pub(crate) fn latest_session(&self) -> Result<SessionId> {
        let (own, others) = self.sessions()?;
        match (own.first(), others) {
            (Some(session), _) => Ok(session.id),
            (None, 0) => bail!("no session is kept yet"),
            (None, _) => bail!(
                "no session of this project is kept; there are {others} of other projects or of none: {}{}",
                self.asker.how_to_see_all(),
                self.by_handle()
            ),
        }
    }

    /// Returns the original that a handle names.
    ///
    /// A handle cannot be guessed: who has one has read the note. So it also brings back what belongs to no project.
    pub(crate) fn recall(&self, handle: &str) -> Result<Vec<u8>> {
        self.holder_of(handle)?;
        Ok(self.store.recall(handle)?)
    }

    /// Finds blocks; says what to do where only others hold such blocks.
    pub(crate) fn search_blocks(
        &self,
        words: &str,
        most: usize,
        session: Option<&str>,
        secrets: &Secrets,
    ) -> Result<(Vec<SearchHit>, Option<String>)> {
        let session = session.map(|word| self.session_named(word)).transpose()?;
        let within = match (session, &self.project) {
            (Some(session), _) => SearchWithin::Session(session),
            (None, Some(project)) => SearchWithin::Scope(project),
            (None, None) => SearchWithin::Everything,
        };
        let find = |within, most| self.store.search(&SearchQuery { words, most, within, secrets });
        let found = find(within, most)?;
        let is_elsewhere = found.is_empty() && session.is_none() && self.project.is_some();
        let elsewhere = is_elsewhere && !find(SearchWithin::Everything, 1)?.is_empty();
        let note = elsewhere.then(|| {
            format!(
                "conversations of other projects or of none hold these words: {}{}",
                self.asker.how_to_see_all(),
                self.by_handle()
            )
        });
        Ok((found, note))
    }

    /// Returns the session used last that holds a block and that may be seen by whoever has its handle.
    fn holder_of(&self, handle: &str) -> Result<SessionId> {
        let holders = self.store.holders(handle)?;
        let seen = holders.iter().find(|holder| self.may_recall(holder));
        seen.map(|holder| holder.session).with_context(|| {
            format!("the block {handle} is kept, but for another project: {}", self.asker.how_to_see_all())
        })
    }

    fn is_own(&self, scope: Option<&str>) -> bool {
        self.project.is_none() || scope.is_some_and(|scope| self.project.as_deref() == Some(scope))
    }

    /// Tells whether a session shows a block to whoever has its handle: one of the own project, one of a folder above the current
    /// one, and one whose project is not known.
    fn may_recall(&self, holder: &HoldingSession) -> bool {
        let Some(project) = &holder.project else { return true };
        let is_above = |folder: &PathBuf| {
            let project = Path::new(project);
            project.is_absolute() && folder.starts_with(project)
        };
        self.is_own(Some(project)) || self.folder.as_ref().is_some_and(is_above)
    }

    /// Says how an agent whose project is not known reaches its own conversation.
    fn by_handle(&self) -> &'static str {
        match self.asker {
            Asker::CommandLine => "",
            Asker::Agent => {
                "; if a note in your conversation names a handle, give that handle as the session"
            }
        }
    }
}
