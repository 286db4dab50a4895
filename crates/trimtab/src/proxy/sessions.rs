//! The sessions that are going on. Takes requests; gives the memory of the session that each one continues, found by the
//! longest chain of blocks that is known. Never needs an id from the client, and never keeps more than so many sessions.
//!
//! What must outlive the process goes through [`SessionStorage`], which is asked before a request is forwarded.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use trimtab_core::{
    BlockHash, ChainHash, Decision, Handle, History, Memory, Millis, Model, Plan, ResentRequest, Role,
    SessionAccount, SessionState, Tokens, Usage, Verdict, account::AccountedRequest, markers::AddedFields,
};

use super::{
    headers::ClientHeaders,
    prepared_request::PlannedRequest,
    size_limit::{OverflowProof, SizeLimit},
    store_health::{StoreHealth, UnkeptReason},
    store_writer::StoreWriter,
    unanswered::{AwaitedAnswer, SentForm, UnansweredRequests},
};

/// A request that goes on in this share of a session's blocks continues the session; one that leaves it earlier is a branch.
const CONTINUES: (usize, usize) = (4, 5);

/// How many things the model must have said for a session to be known by them alone.
const LEAST_SAID: usize = 3;

/// What is about to be sent, for whoever keeps it beyond this process.
pub(crate) struct CommitRequest<'a> {
    /// The client's request.
    pub(crate) history: &'a Arc<History>,
    /// What becomes of every block.
    pub(crate) plan: &'a Arc<Plan>,
    /// What is inserted for the sake of the provider's cache.
    pub(crate) added: &'a Arc<AddedFields>,
    /// What the client says in headers.
    pub(crate) client: &'a Arc<ClientHeaders>,
    /// When it is sent.
    pub(crate) now: Millis,
    pub(crate) when: KeepWhen,
}

/// When a request must be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepWhen {
    /// It hides something for the first time: without the original nobody could bring that back.
    BeforeSending,
    /// It hides nothing that is not kept already. Were it lost, all that is new in it was sent whole.
    Later,
}

/// The name of a request that is kept, by which its answer is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptRequestId(pub(crate) u64);

/// Whether a test lets something be kept.
#[cfg(test)]
pub(crate) type ScriptedStore = Box<dyn Fn(&CommitRequest<'_>) -> Result<()> + Send + Sync>;

/// What outlives the process.
pub(crate) enum SessionStorage {
    Nothing,
    Store(StoreWriter),
    /// Whatever a test wants to happen.
    #[cfg(test)]
    Scripted(ScriptedStore),
}

impl SessionStorage {
    fn keep_request(&self, commit: &CommitRequest<'_>) -> Result<Option<KeptRequestId>> {
        match self {
            SessionStorage::Nothing => Ok(None),
            SessionStorage::Store(writer) => writer.keep_request(commit),
            #[cfg(test)]
            SessionStorage::Scripted(keep) => keep(commit).map(|()| None),
        }
    }

    fn store_writer(&self) -> Option<&StoreWriter> {
        match self {
            SessionStorage::Store(writer) => Some(writer),
            SessionStorage::Nothing => None,
            #[cfg(test)]
            SessionStorage::Scripted(_) => None,
        }
    }
}

/// What is sent.
pub(crate) enum RequestToSend<'a> {
    Planned {
        history: &'a Arc<History>,
        plan: &'a Arc<Plan>,
        added: &'a Arc<AddedFields>,
        client: &'a Arc<ClientHeaders>,
    },
    Again(&'a Arc<ResentRequest>),
}

/// What came of noting that a request is about to be sent.
pub(crate) struct CommitOutcome {
    /// The name under which it is kept.
    pub(crate) kept_as: Option<KeptRequestId>,
    /// Who wants to know whether the provider took it.
    pub(crate) awaited: AwaitedAnswer,
}

/// All sessions.
pub(crate) struct ProxySessions {
    registry: Mutex<SessionRegistry>,
    most: usize,
    keeping: SessionStorage,
}

#[derive(Default)]
struct SessionRegistry {
    owners: HashMap<ChainHash, u64>,
    /// The latest session in which the model said something.
    said_in: HashMap<BlockHash, u64>,
    sessions: HashMap<u64, Arc<ProxySession>>,
    made: u64,
    uses: u64,
}

/// One session.
pub(crate) struct ProxySession {
    key: u64,
    /// The name by which headers and the log speak of it.
    pub(crate) name: String,
    state: Mutex<ProxySessionState>,
}

/// What is known of a session.
#[derive(Clone, Default)]
pub(crate) struct KnownSession {
    pub(crate) state: SessionState,
    /// What the provider's answers taught about how much may be sent.
    pub(crate) size_limit: SizeLimit,
    /// Whether the provider refused a changed request and accepted the original.
    pub(crate) refused: bool,
}

#[derive(Default)]
struct ProxySessionState {
    known: KnownSession,
    /// What was sent and is not in memory yet, because the provider may refuse it.
    unanswered: UnansweredRequests,
    /// Whether a message said that the session no longer fits without us.
    told_needed: bool,
    /// Whether a summary is being asked for.
    asking: bool,
    /// The newest wish in the store that was looked at.
    heard_wish: u64,
    /// How often the store had been opened again when something of this session was kept last.
    kept_in: u64,
    /// Pins that came with requests and are not in the store yet.
    unkept_pins: Vec<Handle>,
    /// The number of the latest request.
    turn: u64,
    chain: Vec<ChainHash>,
    /// What the model said in the latest request.
    said: Vec<BlockHash>,
    /// Everything by which the session can be found, so that it can be forgotten whole.
    found_by: Vec<ChainHash>,
    used: u64,
}

/// The session of a request.
pub(crate) struct MatchedSession {
    pub(crate) session: Arc<ProxySession>,
    /// Whether nothing of the conversation was known.
    pub(crate) new: bool,
}

impl ProxySessions {
    /// Makes a registry of at most `most` sessions.
    pub(crate) fn new(most: usize, keeping: SessionStorage) -> ProxySessions {
        ProxySessions { registry: Mutex::default(), most: most.max(1), keeping }
    }

    /// Returns the session that a request continues, or a new one.
    pub(crate) fn find_session(&self, history: &History, chain: &[ChainHash]) -> MatchedSession {
        let mut registry = lock_ignoring_poison(&self.registry);
        registry.uses += 1;
        let uses = registry.uses;
        let said = first_said(history);
        let known = chain.iter().enumerate().skip(said).rev().find_map(|(index, hash)| {
            let owner = registry.owners.get(hash)?;
            Some((index + 1, Arc::clone(registry.sessions.get(owner)?)))
        });
        let parent = match known {
            None => registry.find_rewritten(history),
            Some((blocks, session)) => {
                let mut state = lock_ignoring_poison(&session.state);
                let (some, of) = CONTINUES;
                if blocks * of >= state.chain.len() * some {
                    state.used = uses;
                    drop(state);
                    return MatchedSession { session, new: false };
                }
                Some(state.known_now())
            }
        };
        let new = parent.is_none();
        let mut known = parent.unwrap_or_default();
        if !new {
            known.state.memory = Arc::new(known.state.memory.for_conversation(chain));
        }
        let session = registry.add_session(chain, known, uses);
        registry.forget_beyond(self.most);
        MatchedSession { session, new }
    }

    /// Returns what was sent of a conversation before this process began; empty where nothing is known.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn known_before(&self, history: &History, client: &ClientHeaders) -> Result<Memory> {
        self.keeping
            .store_writer()
            .map_or_else(|| Ok(Memory::default()), |writer| writer.find_memory(history, client))
    }

    /// Notes what is about to be sent: first with whoever keeps it, then here. It is remembered for good when the provider has
    /// accepted it.
    ///
    /// # Errors
    /// Says why it could not be kept; memory is then as it was.
    pub(crate) fn commit_request(
        &self,
        session: &Arc<ProxySession>,
        chain: &[ChainHash],
        sending: &RequestToSend<'_>,
        now: Millis,
    ) -> Result<CommitOutcome> {
        let kept_as = match sending {
            RequestToSend::Planned { .. } if matches!(self.keeping, SessionStorage::Nothing) => None,
            RequestToSend::Planned { history, plan, added, client } => {
                let when = if self.must_keep_first(session, plan) {
                    KeepWhen::BeforeSending
                } else {
                    KeepWhen::Later
                };
                let commit = CommitRequest { history, plan, added, client, now, when };
                let kept_as = self.keeping.keep_request(&commit)?;
                // The file that it is kept in now may be another one.
                lock_ignoring_poison(&session.state).kept_in = self.times_opened_again();
                self.keep_pins(session, history, client);
                kept_as
            }
            RequestToSend::Again(_) => None,
        };
        let history = match sending {
            RequestToSend::Planned { history, .. } => history.as_ref(),
            RequestToSend::Again(resent) => &resent.history,
        };
        // From now on it finds what is new; the old is found already.
        let sent_as = match sending {
            RequestToSend::Planned { plan, .. } => SentForm::Planned(Arc::clone(plan)),
            RequestToSend::Again(resent) => SentForm::Again(Arc::clone(resent)),
        };
        let (new, goes_on, number) = {
            let mut state = lock_ignoring_poison(&session.state);
            let number = state.unanswered.add(sent_as, now);
            let same = state.chain.iter().zip(chain).take_while(|(one, other)| one == other).count();
            let goes_on = same == state.chain.len();
            state.chain.truncate(same);
            state.chain.extend_from_slice(chain.get(same..).unwrap_or_default());
            (same, goes_on, number)
        };
        let said = history.said_by_model(if goes_on { new } else { 0 });
        let mut registry = lock_ignoring_poison(&self.registry);
        if registry.sessions.contains_key(&session.key) {
            let mut state = lock_ignoring_poison(&session.state);
            for hash in chain.iter().skip(new) {
                if registry.owners.insert(*hash, session.key) != Some(session.key) {
                    state.found_by.push(*hash);
                }
            }
            if !goes_on {
                let before = std::mem::take(&mut state.said);
                registry.forget_said(session.key, &before);
            }
            registry.said_in.extend(said.iter().map(|hash| (*hash, session.key)));
            state.said.extend(said);
        }
        Ok(CommitOutcome { kept_as, awaited: AwaitedAnswer::new(Arc::clone(session), number) })
    }

    /// Tells whether the originals of a request need no more keeping before something of it is hidden.
    pub(crate) fn has_originals(&self, kept_as: Option<KeptRequestId>) -> bool {
        match &self.keeping {
            SessionStorage::Nothing => true,
            SessionStorage::Store(writer) => kept_as.is_some_and(|name| writer.is_kept(name)),
            #[cfg(test)]
            SessionStorage::Scripted(_) => kept_as.is_some(),
        }
    }

    /// Tells whether a plan hides something for the first time that must be on disk before it is sent.
    pub(crate) fn waits_for_disk(&self, session: &ProxySession, plan: &Plan) -> bool {
        let has_news = || {
            self.must_keep_first(session, plan)
                || !lock_ignoring_poison(&session.state).unkept_pins.is_empty()
        };
        !matches!(self.keeping, SessionStorage::Nothing) && has_news()
    }

    /// Tells whether a plan hides something whose original is not in the store yet: it hides it for the first time, or the
    /// store is another file since.
    fn must_keep_first(&self, session: &ProxySession, plan: &Plan) -> bool {
        let state = lock_ignoring_poison(&session.state);
        let is_other_file = state.kept_in != self.times_opened_again();
        let is_hidden = |decision: &Decision| decision.verdict != Verdict::Keep;
        state.known.state.memory.hides_anew(plan) || (is_other_file && plan.decisions().iter().any(is_hidden))
    }

    fn times_opened_again(&self) -> u64 {
        self.keeping.store_writer().map_or(0, StoreWriter::times_opened_again)
    }

    /// Returns what is remembered, with what anybody asked for about single blocks until now: through the store, or with this
    /// request.
    pub(crate) fn apply_wishes(
        &self,
        session: &ProxySession,
        memory: Arc<Memory>,
        history: &History,
        chain: &[ChainHash],
        client: &ClientHeaders,
    ) -> Arc<Memory> {
        let pins = &client.pins;
        // What cannot be read now is looked for again with the next request.
        let newest =
            self.keeping.store_writer().and_then(|writer| Some((writer, writer.newest_wish().ok()?)));
        let heard = lock_ignoring_poison(&session.state).heard_wish;
        let news = newest.filter(|(_, newest)| *newest != heard);
        let wishes = news
            .and_then(|(writer, newest)| Some((newest, writer.find_wishes(history, chain, client).ok()?)));
        if wishes.is_none() && pins.iter().all(|pin| memory.wishes().is_pinned(*pin)) {
            return memory;
        }
        let mut state = lock_ignoring_poison(&session.state);
        let ProxySessionState { known, unanswered, unkept_pins, heard_wish, .. } = &mut *state;
        let memory = Arc::make_mut(&mut known.state.memory);
        if let Some((newest, wishes)) = wishes {
            *heard_wish = newest;
            memory.set_wishes(wishes);
            unkept_pins.iter().for_each(|pin| memory.pin(*pin));
        }
        for pin in pins {
            if !memory.wishes().is_pinned(*pin) {
                memory.pin(*pin);
                unkept_pins.push(*pin);
            }
        }
        unanswered.memory_with_all(&known.state.memory)
    }

    /// Keeps the pins of a session that came with its requests, if a block has that handle.
    fn keep_pins(&self, session: &ProxySession, history: &Arc<History>, client: &Arc<ClientHeaders>) {
        let pins = std::mem::take(&mut lock_ignoring_poison(&session.state).unkept_pins);
        if let Some(writer) = self.keeping.store_writer().filter(|_| !pins.is_empty()) {
            writer.keep_pins(history, pins, client);
        }
    }

    /// Notes what a provider reported for a request. Returns the dollars that were saved by it.
    pub(crate) fn record_usage(
        &self,
        about: &PlannedRequest,
        request: AccountedRequest,
        usage: Usage,
    ) -> f64 {
        let (session, kept_as) = (&about.session, about.kept_as);
        let saved = session.learn_usage(about.model.as_ref(), request, usage);
        if let Some((writer, name)) = self.keeping.store_writer().zip(kept_as) {
            writer.record_usage(name, usage);
        }
        saved
    }

    /// Notes what a ping after a request used. Returns whether the provider still had what was cached.
    pub(crate) fn record_ping(
        &self,
        about: &PlannedRequest,
        model: &Model,
        at: Millis,
        usage: Usage,
    ) -> bool {
        let was_alive = lock_ignoring_poison(&about.session.state).known.state.learn_ping(model, at, usage);
        if let Some((writer, name)) = self.keeping.store_writer().zip(about.kept_as) {
            writer.record_ping(name, at, usage);
        }
        was_alive
    }

    /// Notes that a provider refused a request that is kept.
    pub(crate) fn record_refusal(&self, kept_as: Option<KeptRequestId>) {
        if let Some((writer, name)) = self.keeping.store_writer().zip(kept_as) {
            writer.record_refusal(name);
        }
    }

    /// Keeps a summary of everything up to a block.
    ///
    /// # Errors
    /// Says why it is not kept.
    pub(crate) fn keep_summary(
        &self,
        history: &Arc<History>,
        covers: ChainHash,
        text: &str,
        client: &Arc<ClientHeaders>,
    ) -> Result<()> {
        self.keeping
            .store_writer()
            .map_or(Ok(()), |writer| writer.keep_summary(history, covers, text, client))
    }

    /// Counts a request that is not kept, where requests are.
    pub(crate) fn count_unkept(&self, why: UnkeptReason) {
        if let Some(writer) = self.keeping.store_writer() {
            writer.count_unkept(why);
        }
    }

    /// Returns what was not kept, by reason.
    pub(crate) fn unkept_counts(&self) -> Vec<(UnkeptReason, u64)> {
        self.keeping.store_writer().map(|writer| writer.health().unkept_counts()).unwrap_or_default()
    }

    /// Returns what people should know about the store.
    pub(crate) fn store_news(&self) -> Vec<String> {
        self.keeping.store_writer().map(|writer| writer.health().take_news()).unwrap_or_default()
    }

    /// Tells whether there is a store that cannot be written to.
    pub(crate) fn is_store_in_trouble(&self) -> bool {
        self.keeping.store_writer().map(StoreWriter::health).is_some_and(StoreHealth::is_in_trouble)
    }

    /// Waits until everything that was sent so far is kept, or counted as not kept.
    pub(crate) fn finish_keeping(&self) {
        if let Some(writer) = self.keeping.store_writer() {
            // Its answer comes after all that was asked before.
            writer.is_kept(KeptRequestId(0));
        }
    }

    /// Returns how many sessions are known.
    pub(crate) fn len(&self) -> usize {
        lock_ignoring_poison(&self.registry).sessions.len()
    }
}

impl SessionRegistry {
    fn add_session(&mut self, chain: &[ChainHash], parent: KnownSession, uses: u64) -> Arc<ProxySession> {
        self.made += 1;
        let mut name = String::new();
        for byte in chain.last().map(|hash| hash.0).unwrap_or_default().iter().take(4) {
            let _ = write!(name, "{byte:02x}");
        }
        let state = ProxySessionState { known: parent, used: uses, ..ProxySessionState::default() };
        let session = Arc::new(ProxySession { key: self.made, name, state: Mutex::new(state) });
        self.sessions.insert(self.made, Arc::clone(&session));
        session
    }

    /// Returns what is known of the session whose messages were rewritten to make this request: one in which the model said
    /// nearly all that it said.
    fn find_rewritten(&self, history: &History) -> Option<KnownSession> {
        let said: HashSet<BlockHash> = history.said_by_model(0).into_iter().collect();
        let mut matches: BTreeMap<u64, usize> = BTreeMap::new();
        for owner in said.iter().filter_map(|hash| self.said_in.get(hash)) {
            *matches.entry(*owner).or_default() += 1;
        }
        let (key, count) = matches.into_iter().max_by_key(|(key, count)| (*count, *key))?;
        let state = lock_ignoring_poison(&self.sessions.get(&key)?.state);
        let (some, of) = CONTINUES;
        let is_same = count >= LEAST_SAID && count * of >= state.said.len() * some;
        is_same.then(|| state.known_now())
    }

    fn forget_said(&mut self, session: u64, said: &[BlockHash]) {
        for hash in said {
            if self.said_in.get(hash) == Some(&session) {
                self.said_in.remove(hash);
            }
        }
    }

    /// Forgets the sessions that were used least recently.
    fn forget_beyond(&mut self, most: usize) {
        while self.sessions.len() > most {
            let oldest = self
                .sessions
                .values()
                .min_by_key(|session| lock_ignoring_poison(&session.state).used)
                .map(|session| session.key);
            let Some(session) = oldest.and_then(|key| self.sessions.remove(&key)) else { return };
            let state = lock_ignoring_poison(&session.state);
            self.forget_said(session.key, &state.said);
            for hash in &state.found_by {
                if self.owners.get(hash) == Some(&session.key) {
                    self.owners.remove(hash);
                }
            }
        }
    }
}

impl ProxySessionState {
    /// Returns what is known if the provider takes all that is under way.
    fn known_now(&self) -> KnownSession {
        let memory = self.unanswered.memory_with_all(&self.known.state.memory);
        let state = SessionState { memory, ..self.known.state.clone() };
        KnownSession { state, ..self.known.clone() }
    }
}

impl ProxySession {
    /// Returns what is known now.
    pub(crate) fn known_now(&self) -> KnownSession {
        lock_ignoring_poison(&self.state).known_now()
    }

    /// Takes a conversation that began elsewhere as sent so far.
    pub(crate) fn begin_with(&self, memory: Memory) -> Arc<Memory> {
        let mut state = lock_ignoring_poison(&self.state);
        if state.known.state.memory.is_empty() {
            state.known.state.memory = Arc::new(memory);
        }
        state.known_now().state.memory
    }

    /// Changes what is under way and what is remembered together.
    pub(crate) fn change_unanswered(&self, change: impl FnOnce(&mut UnansweredRequests, &mut Arc<Memory>)) {
        let ProxySessionState { unanswered, known, .. } = &mut *lock_ignoring_poison(&self.state);
        change(unanswered, &mut known.state.memory);
    }

    /// Returns what the session has cost since it is known here, and what it would have cost untouched.
    pub(crate) fn account(&self) -> SessionAccount {
        lock_ignoring_poison(&self.state).known.state.account.clone()
    }

    /// Returns a number that no other session of this process has.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Notes that a request begins; returns its number.
    pub(crate) fn begin_turn(&self) -> u64 {
        let mut state = lock_ignoring_poison(&self.state);
        state.turn += 1;
        state.turn
    }

    /// Tells whether no request began after this one.
    pub(crate) fn is_latest_turn(&self, turn: u64) -> bool {
        lock_ignoring_poison(&self.state).turn == turn
    }

    fn learn_usage(&self, model: Option<&Model>, request: AccountedRequest, usage: Usage) -> f64 {
        lock_ignoring_poison(&self.state).known.state.learn_usage(model, request, usage)
    }

    /// Changes what is remembered.
    pub(crate) fn change_memory(&self, change: impl FnOnce(&mut Memory)) {
        change(Arc::make_mut(&mut lock_ignoring_poison(&self.state).known.state.memory));
    }

    /// Tells whether nobody asks for a summary of this session yet; from now on somebody does.
    pub(crate) fn begin_asking(&self) -> bool {
        !std::mem::replace(&mut lock_ignoring_poison(&self.state).asking, true)
    }

    /// Notes that a summary was had or given up.
    pub(crate) fn end_asking(&self) {
        lock_ignoring_poison(&self.state).asking = false;
    }

    /// Learns from a refusal of `sent` tokens that no more than `most` are taken.
    pub(crate) fn learn_too_long(&self, model: &str, sent: Tokens, most: Tokens, proof: OverflowProof) {
        lock_ignoring_poison(&self.state).known.size_limit.learn_refused(model, sent, most, proof);
    }

    /// Learns that the provider accepted so many tokens.
    pub(crate) fn learn_accepted(&self, model: &str, sent: Tokens) {
        lock_ignoring_poison(&self.state).known.size_limit.learn_accepted(model, sent);
    }

    /// Learns that the provider refused what was changed.
    pub(crate) fn record_refusal(&self) {
        lock_ignoring_poison(&self.state).known.refused = true;
    }

    /// Tells, once in a session, that it is time to say that it no longer fits without us.
    pub(crate) fn tell_needed(&self) -> bool {
        !std::mem::replace(&mut lock_ignoring_poison(&self.state).told_needed, true)
    }
}

/// Returns the number of the first block that somebody said. Tools and system alone do not make a conversation known.
fn first_said(history: &History) -> usize {
    let said = |block: &trimtab_core::Block| {
        let role = history.entry_of(block).map(|entry| entry.role);
        matches!(role, Some(Role::User | Role::Assistant | Role::Tool))
    };
    history.blocks().iter().position(said).unwrap_or(history.blocks().len())
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::{Policy, Settings, chain, fit, parse, resend};

    /// A chat whose messages are these words, said in turns.
    fn chat(words: &[&str]) -> Vec<u8> {
        let roles = ["system", "user", "assistant"];
        let role = |index: usize| if index == 0 { roles[0] } else { roles[1 + (index - 1) % 2] };
        let messages: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(index, word)| format!(r#"{{"role":"{}","content":"{word}"}}"#, role(index)))
            .collect();
        format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.join(",")).into_bytes()
    }

    fn send(sessions: &ProxySessions, words: &[&str]) -> MatchedSession {
        let history = parse(chat(words)).unwrap();
        let found = sessions.find_session(&history, &chain(&history));
        let memory = found.session.known_now().state.memory;
        let resent = Arc::new(resend(Arc::new(parse(chat(words)).unwrap()), &memory));
        sessions
            .commit_request(&found.session, &chain(&history), &RequestToSend::Again(&resent), Millis(0))
            .unwrap();
        found
    }

    fn registry(most: usize) -> ProxySessions {
        ProxySessions::new(most, SessionStorage::Nothing)
    }

    #[test]
    fn a_longer_request_continues_its_session() {
        let sessions = registry(8);
        let first = send(&sessions, &["s", "one"]);
        let second = send(&sessions, &["s", "one", "two", "three"]);
        assert_eq!(first.session.key, second.session.key);
        assert!(first.new && !second.new);
    }

    #[test]
    fn the_same_system_prompt_alone_is_another_session() {
        let sessions = registry(8);
        let first = send(&sessions, &["s", "one"]);
        let second = send(&sessions, &["s", "other"]);
        assert_ne!(first.session.key, second.session.key);
        assert!(second.new);
    }

    #[test]
    fn a_branch_is_a_session_that_knows_what_was_sent() {
        let sessions = registry(8);
        let words = ["s", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let trunk = send(&sessions, &words);
        let branch = send(&sessions, &["s", "1", "2", "three"]);
        assert_ne!(trunk.session.key, branch.session.key);
        assert!(!branch.new && !branch.session.known_now().state.memory.is_empty());
        assert_eq!(send(&sessions, &[&words[..], &["10"]].concat()).session.key, trunk.session.key);
        assert_eq!(send(&sessions, &["s", "1", "2", "three", "four"]).session.key, branch.session.key);
    }

    #[test]
    fn an_edited_last_message_stays_in_its_session() {
        let sessions = registry(8);
        let first = send(&sessions, &["s", "1", "2", "3", "4", "5", "draft"]);
        let second = send(&sessions, &["s", "1", "2", "3", "4", "5", "final"]);
        assert_eq!(first.session.key, second.session.key);
    }

    #[test]
    fn the_session_used_least_recently_is_forgotten() {
        let sessions = registry(2);
        let first = send(&sessions, &["s", "a"]);
        send(&sessions, &["s", "b"]);
        send(&sessions, &["s", "a", "more"]);
        send(&sessions, &["s", "c"]);
        assert_eq!(sessions.len(), 2);
        assert_eq!(send(&sessions, &["s", "a", "more", "yet"]).session.key, first.session.key);
        assert!(send(&sessions, &["s", "b"]).new);
    }

    #[test]
    fn a_forgotten_session_leaves_nothing_behind() {
        let sessions = registry(1);
        send(&sessions, &["s", "1", "2", "3", "4", "5", "draft"]);
        send(&sessions, &["s", "1", "2", "3", "4", "5", "final"]);
        send(&sessions, &["s", "other"]);
        assert_eq!(lock_ignoring_poison(&sessions.registry).owners.len(), 2);
        assert_eq!(lock_ignoring_poison(&sessions.registry).said_in.len(), 0);
    }

    #[test]
    fn a_conversation_whose_beginning_was_rewritten_is_known_by_what_the_model_said() {
        let sessions = registry(8);
        let words = ["s", "1", "two", "3", "four", "5", "six", "7"];
        send(&sessions, &words);
        let rewritten: Vec<&str> = ["other"].into_iter().chain(words.into_iter().skip(1)).collect();
        let found = send(&sessions, &[&rewritten[..], &["eight", "9"]].concat());
        assert!(!found.new && !found.session.known_now().state.memory.is_empty());
        let other = send(&sessions, &["x", "1", "two", "3", "else", "5", "else", "7"]);
        assert!(other.new, "a few words in common make no session");
        let short = send(&sessions, &["y", "1", "two", "3"]);
        assert!(short.new, "nor does a part of what was said");
    }

    #[test]
    fn a_conversation_whose_beginning_changes_every_time_takes_no_more_memory() {
        let sessions = registry(8);
        let words = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];
        let remembered = |day: u32| {
            let system = format!("today is day {day}");
            let found = send(&sessions, &[&[&system[..]], &words[..]].concat());
            assert!(day == 0 || !found.new, "it is known by what the model said");
            found.session.known_now().state.memory.verdicts().count()
        };
        let counts: Vec<usize> = (0..30).map(remembered).collect();
        assert!(counts.iter().all(|count| *count <= words.len() + 2), "{counts:?}");
    }

    #[test]
    fn what_cannot_be_kept_is_not_remembered() {
        let keeping = SessionStorage::Scripted(Box::new(|_| anyhow::bail!("the disk is full")));
        let sessions = ProxySessions::new(8, keeping);
        let settings = Settings::new(Policy::find_shipped("steady").unwrap());
        let fitted = fit(chat(&["s", "one"]), &Memory::default(), &settings, Millis(0)).unwrap();
        let chain = chain(&fitted.history);
        let session = sessions.find_session(&fitted.history, &chain).session;
        let plan = Arc::new(fitted.plan);
        let (added, client) = (Arc::default(), Arc::default());
        let sending =
            RequestToSend::Planned { history: &fitted.history, plan: &plan, added: &added, client: &client };
        assert!(sessions.commit_request(&session, &chain, &sending, Millis(0)).is_err());
        assert!(session.known_now().state.memory.is_empty());
    }
}
