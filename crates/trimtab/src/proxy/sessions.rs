//! The sessions that are going on. Takes requests; gives the memory of the session that each one continues, found by the
//! longest chain of blocks that is known. Never needs an id from the client, and never keeps more than so many sessions.
//!
//! What must outlive the process goes through [`Keeping`], which is asked before a request is forwarded.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use trimtab_core::{
    BlockHash, ChainHash, Decision, Handle, History, Memory, Millis, Plan, Resent, Role, SessionState,
    Tokens, Usage, Verdict,
};

use super::{
    headers::ClientHeaders,
    keeper::Keeper,
    size_limit::{Proof, SizeLimit},
    store_health::{StoreHealth, Unkept},
    unanswered::{AwaitedAnswer, SentAs, Unanswered},
};

/// How long a provider keeps its cache, where nothing better is known: five minutes.
const CACHE_LIFETIME_MS: i64 = 5 * 60 * 1000;

/// A request that goes on in this share of a session's blocks continues the session; one that leaves it earlier is a branch.
const CONTINUES: (usize, usize) = (4, 5);

/// How many things the model must have said for a session to be known by them alone.
const LEAST_SAID: usize = 3;

/// What is about to be sent, for whoever keeps it beyond this process.
pub(crate) struct Commit<'a> {
    /// The request as it came.
    pub(crate) history: &'a Arc<History>,
    /// What becomes of every block.
    pub(crate) plan: &'a Arc<Plan>,
    /// What the client says in headers.
    pub(crate) client: &'a Arc<ClientHeaders>,
    /// When it is sent.
    pub(crate) now: Millis,
    pub(crate) when: When,
}

/// When a request must be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// It hides something for the first time: without the original nobody could bring that back.
    BeforeSending,
    /// It hides nothing that is not kept already. Were it lost, all that is new in it was sent whole.
    Later,
}

/// The name of a request that is kept, by which its answer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptAs(pub(crate) u64);

/// Whether a test lets something be kept.
#[cfg(test)]
pub(crate) type Scripted = Box<dyn Fn(&Commit<'_>) -> Result<()> + Send + Sync>;

/// What outlives the process.
pub(crate) enum Keeping {
    Nothing,
    Store(Keeper),
    /// Whatever a test wants to happen.
    #[cfg(test)]
    Scripted(Scripted),
}

impl Keeping {
    fn keep(&self, commit: &Commit<'_>) -> Result<Option<KeptAs>> {
        match self {
            Keeping::Nothing => Ok(None),
            Keeping::Store(keeper) => keeper.keep(commit),
            #[cfg(test)]
            Keeping::Scripted(keep) => keep(commit).map(|()| None),
        }
    }

    fn keeper(&self) -> Option<&Keeper> {
        match self {
            Keeping::Store(keeper) => Some(keeper),
            Keeping::Nothing => None,
            #[cfg(test)]
            Keeping::Scripted(_) => None,
        }
    }
}

/// What is sent.
pub(crate) enum Sending<'a> {
    Planned { history: &'a Arc<History>, plan: &'a Arc<Plan>, client: &'a Arc<ClientHeaders> },
    Again(&'a Arc<Resent>),
}

/// What came of noting that a request is about to be sent.
pub(crate) struct Committed {
    /// The name under which it is kept.
    pub(crate) kept_as: Option<KeptAs>,
    /// Who wants to know whether the provider took it.
    pub(crate) awaited: AwaitedAnswer,
}

/// All sessions.
pub(crate) struct Sessions {
    registry: Mutex<Registry>,
    most: usize,
    keeping: Keeping,
}

#[derive(Default)]
struct Registry {
    owners: HashMap<ChainHash, u64>,
    /// The latest session in which the model said something.
    said_in: HashMap<BlockHash, u64>,
    sessions: HashMap<u64, Arc<Session>>,
    made: u64,
    uses: u64,
}

/// One session.
pub(crate) struct Session {
    key: u64,
    /// The name by which headers and the log speak of it.
    pub(crate) name: String,
    state: Mutex<State>,
}

/// What is known of a session.
#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) state: SessionState,
    /// What the provider's answers taught about how much may be sent.
    pub(crate) size_limit: SizeLimit,
    /// Whether the provider refused a changed request and took it as it came.
    pub(crate) refused: bool,
}

#[derive(Default)]
struct State {
    known: Known,
    /// What was sent and is not in memory yet, because the provider may refuse it.
    unanswered: Unanswered,
    /// Whether people were told that the session no longer fits without us.
    told_needed: bool,
    /// Whether a summary is being asked for.
    asking: bool,
    /// The newest wish in the store that was looked at.
    heard_wish: u64,
    /// How often the store had been opened again when something of this session was kept last.
    kept_in: u64,
    /// Pins that came with requests and are not in the store yet.
    unkept_pins: Vec<Handle>,
    last: Option<(Tokens, Millis)>,
    chain: Vec<ChainHash>,
    /// What the model said in the latest request.
    said: Vec<BlockHash>,
    /// Everything by which the session can be found, so that it can be forgotten whole.
    found_by: Vec<ChainHash>,
    used: u64,
}

/// The session of a request.
pub(crate) struct Found {
    pub(crate) session: Arc<Session>,
    /// Whether nothing of the conversation was known.
    pub(crate) new: bool,
}

impl Sessions {
    /// Makes a registry of at most `most` sessions.
    pub(crate) fn new(most: usize, keeping: Keeping) -> Sessions {
        Sessions { registry: Mutex::default(), most: most.max(1), keeping }
    }

    /// Returns the session that a request continues, or a new one.
    pub(crate) fn find(&self, history: &History, chain: &[ChainHash]) -> Found {
        let mut registry = lock(&self.registry);
        registry.uses += 1;
        let uses = registry.uses;
        let said = first_said(history);
        let known = chain.iter().enumerate().skip(said).rev().find_map(|(index, hash)| {
            let owner = registry.owners.get(hash)?;
            Some((index + 1, Arc::clone(registry.sessions.get(owner)?)))
        });
        let parent = match known {
            None => registry.rewritten(history),
            Some((blocks, session)) => {
                let mut state = lock(&session.state);
                let (some, of) = CONTINUES;
                if blocks * of >= state.chain.len() * some {
                    state.used = uses;
                    drop(state);
                    return Found { session, new: false };
                }
                Some(state.known_now())
            }
        };
        let new = parent.is_none();
        let mut known = parent.unwrap_or_default();
        if !new {
            known.state.memory = Arc::new(known.state.memory.for_conversation(chain));
        }
        let session = registry.add(chain, known, uses);
        registry.forget_beyond(self.most);
        Found { session, new }
    }

    /// Returns what was sent of a conversation before this process began; empty where nothing is known.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn known_before(&self, history: &History, client: &ClientHeaders) -> Result<Memory> {
        self.keeping.keeper().map_or_else(|| Ok(Memory::default()), |keeper| keeper.known(history, client))
    }

    /// Notes what is about to be sent: first with whoever keeps it, then here. It is remembered for good when the provider has
    /// accepted it.
    ///
    /// # Errors
    /// Says why it could not be kept; memory is then as it was.
    pub(crate) fn commit(
        &self,
        session: &Arc<Session>,
        chain: &[ChainHash],
        sending: &Sending<'_>,
        now: Millis,
    ) -> Result<Committed> {
        let kept_as = match sending {
            Sending::Planned { .. } if matches!(self.keeping, Keeping::Nothing) => None,
            Sending::Planned { history, plan, client } => {
                let when =
                    if self.must_keep_first(session, plan) { When::BeforeSending } else { When::Later };
                let kept_as = self.keeping.keep(&Commit { history, plan, client, now, when })?;
                // The file that it is kept in now may be another one.
                lock(&session.state).kept_in = self.times_opened_again();
                self.keep_pins(session, history, client);
                kept_as
            }
            Sending::Again(_) => None,
        };
        let history = match sending {
            Sending::Planned { history, .. } => history.as_ref(),
            Sending::Again(resent) => &resent.history,
        };
        // What is new is found by it from now on; what is old already is.
        let sent_as = match sending {
            Sending::Planned { plan, .. } => SentAs::Planned(Arc::clone(plan)),
            Sending::Again(resent) => SentAs::Again(Arc::clone(resent)),
        };
        let (new, goes_on, number) = {
            let mut state = lock(&session.state);
            let number = state.unanswered.add(sent_as, now);
            let same = state.chain.iter().zip(chain).take_while(|(one, other)| one == other).count();
            let goes_on = same == state.chain.len();
            state.chain.truncate(same);
            state.chain.extend_from_slice(chain.get(same..).unwrap_or_default());
            (same, goes_on, number)
        };
        let said = history.said_by_model(if goes_on { new } else { 0 });
        let mut registry = lock(&self.registry);
        if registry.sessions.contains_key(&session.key) {
            let mut state = lock(&session.state);
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
        Ok(Committed { kept_as, awaited: AwaitedAnswer::new(Arc::clone(session), number) })
    }

    /// Tells whether the originals of a request need no more keeping before something of it is hidden.
    pub(crate) fn has_originals(&self, kept_as: Option<KeptAs>) -> bool {
        match &self.keeping {
            Keeping::Nothing => true,
            Keeping::Store(keeper) => kept_as.is_some_and(|name| keeper.is_kept(name)),
            #[cfg(test)]
            Keeping::Scripted(_) => kept_as.is_some(),
        }
    }

    /// Tells whether a plan hides something for the first time that must be on disk before it is sent.
    pub(crate) fn waits_for_disk(&self, session: &Session, plan: &Plan) -> bool {
        let has_news = || self.must_keep_first(session, plan) || !lock(&session.state).unkept_pins.is_empty();
        !matches!(self.keeping, Keeping::Nothing) && has_news()
    }

    /// Tells whether a plan hides something whose original is not in the store yet: it hides it for the first time, or the
    /// store is another file since.
    fn must_keep_first(&self, session: &Session, plan: &Plan) -> bool {
        let state = lock(&session.state);
        let is_other_file = state.kept_in != self.times_opened_again();
        let is_hidden = |decision: &Decision| decision.verdict != Verdict::Keep;
        state.known.state.memory.hides_anew(plan) || (is_other_file && plan.decisions().iter().any(is_hidden))
    }

    fn times_opened_again(&self) -> u64 {
        self.keeping.keeper().map_or(0, Keeper::times_opened_again)
    }

    /// Returns what is remembered, with what anybody asked for about single blocks until now: through the store, or with this
    /// request.
    pub(crate) fn obey(
        &self,
        session: &Session,
        memory: Arc<Memory>,
        history: &History,
        chain: &[ChainHash],
        client: &ClientHeaders,
    ) -> Arc<Memory> {
        let pins = &client.pins;
        // What cannot be read now is looked for again with the next request.
        let newest = self.keeping.keeper().and_then(|keeper| Some((keeper, keeper.newest_wish().ok()?)));
        let heard = lock(&session.state).heard_wish;
        let news = newest.filter(|(_, newest)| *newest != heard);
        let wishes =
            news.and_then(|(keeper, newest)| Some((newest, keeper.wishes(history, chain, client).ok()?)));
        if wishes.is_none() && pins.iter().all(|pin| memory.wishes().is_pinned(*pin)) {
            return memory;
        }
        let mut state = lock(&session.state);
        let State { known, unanswered, unkept_pins, heard_wish, .. } = &mut *state;
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

    /// Keeps the pins of a session that came with its requests. What no block has is not kept.
    fn keep_pins(&self, session: &Session, history: &Arc<History>, client: &Arc<ClientHeaders>) {
        let pins = std::mem::take(&mut lock(&session.state).unkept_pins);
        if let Some(keeper) = self.keeping.keeper().filter(|_| !pins.is_empty()) {
            keeper.pin(history, pins, client);
        }
    }

    /// Notes what a provider reported for a request of `sent` tokens as counted here.
    pub(crate) fn answered(&self, session: &Session, kept_as: Option<KeptAs>, sent: Tokens, usage: Usage) {
        session.learn(sent, usage);
        if let Some((keeper, name)) = self.keeping.keeper().zip(kept_as) {
            keeper.answered(name, usage);
        }
    }

    /// Notes that a provider refused a request that is kept.
    pub(crate) fn refused(&self, kept_as: Option<KeptAs>) {
        if let Some((keeper, name)) = self.keeping.keeper().zip(kept_as) {
            keeper.refused(name);
        }
    }

    /// Keeps a summary of everything up to a block.
    ///
    /// # Errors
    /// Says why it is not kept.
    pub(crate) fn summarized(
        &self,
        history: &Arc<History>,
        covers: ChainHash,
        text: &str,
        client: &Arc<ClientHeaders>,
    ) -> Result<()> {
        self.keeping.keeper().map_or(Ok(()), |keeper| keeper.summarized(history, covers, text, client))
    }

    /// Counts a request that is not kept, where requests are.
    pub(crate) fn count_unkept(&self, why: Unkept) {
        if let Some(keeper) = self.keeping.keeper() {
            keeper.count_unkept(why);
        }
    }

    /// Returns what was not kept, by reason.
    pub(crate) fn unkept(&self) -> Vec<(Unkept, u64)> {
        self.keeping.keeper().map(|keeper| keeper.health().unkept()).unwrap_or_default()
    }

    /// Returns what people should know about the store.
    pub(crate) fn store_news(&self) -> Vec<String> {
        self.keeping.keeper().map(|keeper| keeper.health().take_news()).unwrap_or_default()
    }

    /// Tells whether there is a store that cannot be written to.
    pub(crate) fn is_store_in_trouble(&self) -> bool {
        self.keeping.keeper().map(Keeper::health).is_some_and(StoreHealth::is_in_trouble)
    }

    /// Waits until everything that was sent so far is kept, or counted as not kept.
    pub(crate) fn finish_keeping(&self) {
        if let Some(keeper) = self.keeping.keeper() {
            // Its answer comes after all that was asked before.
            keeper.is_kept(KeptAs(0));
        }
    }

    /// Returns how many sessions are known.
    pub(crate) fn len(&self) -> usize {
        lock(&self.registry).sessions.len()
    }
}

impl Registry {
    fn add(&mut self, chain: &[ChainHash], parent: Known, uses: u64) -> Arc<Session> {
        self.made += 1;
        let mut name = String::new();
        for byte in chain.last().map(|hash| hash.0).unwrap_or_default().iter().take(4) {
            let _ = write!(name, "{byte:02x}");
        }
        let state = State { known: parent, used: uses, ..State::default() };
        let session = Arc::new(Session { key: self.made, name, state: Mutex::new(state) });
        self.sessions.insert(self.made, Arc::clone(&session));
        session
    }

    /// Returns what is known of the session whose messages were rewritten to make this request: one in which the model said
    /// nearly all that it said.
    fn rewritten(&self, history: &History) -> Option<Known> {
        let said: HashSet<BlockHash> = history.said_by_model(0).into_iter().collect();
        let mut matches: BTreeMap<u64, usize> = BTreeMap::new();
        for owner in said.iter().filter_map(|hash| self.said_in.get(hash)) {
            *matches.entry(*owner).or_default() += 1;
        }
        let (key, count) = matches.into_iter().max_by_key(|(key, count)| (*count, *key))?;
        let state = lock(&self.sessions.get(&key)?.state);
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
                .min_by_key(|session| lock(&session.state).used)
                .map(|session| session.key);
            let Some(session) = oldest.and_then(|key| self.sessions.remove(&key)) else { return };
            let state = lock(&session.state);
            self.forget_said(session.key, &state.said);
            for hash in &state.found_by {
                if self.owners.get(hash) == Some(&session.key) {
                    self.owners.remove(hash);
                }
            }
        }
    }
}

impl State {
    /// Returns what is known if the provider takes all that is under way.
    fn known_now(&self) -> Known {
        let memory = self.unanswered.memory_with_all(&self.known.state.memory);
        let state = SessionState { memory, calibration: self.known.state.calibration };
        Known { state, ..self.known.clone() }
    }
}

impl Session {
    /// Returns what is known now.
    pub(crate) fn known(&self) -> Known {
        lock(&self.state).known_now()
    }

    /// Takes a conversation that began elsewhere as sent so far.
    pub(crate) fn begin(&self, memory: Memory) -> Arc<Memory> {
        let mut state = lock(&self.state);
        if state.known.state.memory.is_empty() {
            state.known.state.memory = Arc::new(memory);
        }
        state.known_now().state.memory
    }

    /// Changes what is under way and what is remembered together.
    pub(crate) fn settle(&self, change: impl FnOnce(&mut Unanswered, &mut Arc<Memory>)) {
        let State { unanswered, known, .. } = &mut *lock(&self.state);
        change(unanswered, &mut known.state.memory);
    }

    /// Notes the size of a request as it came; returns what of it the provider's cache would hold had it never been changed.
    pub(crate) fn grown_to(&self, raw: Tokens, now: Millis) -> Tokens {
        let last = lock(&self.state).last.replace((raw, now));
        match last {
            Some((before, at)) if now.0 - at.0 < CACHE_LIFETIME_MS => before.min(raw),
            _ => Tokens::ZERO,
        }
    }

    fn learn(&self, sent: Tokens, usage: Usage) {
        lock(&self.state).known.state.learn(sent, usage);
    }

    /// Changes what is remembered.
    pub(crate) fn remember(&self, change: impl FnOnce(&mut Memory)) {
        change(Arc::make_mut(&mut lock(&self.state).known.state.memory));
    }

    /// Tells whether nobody asks for a summary of this session yet; from now on somebody does.
    pub(crate) fn begin_asking(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).asking, true)
    }

    /// Notes that a summary was had or given up.
    pub(crate) fn end_asking(&self) {
        lock(&self.state).asking = false;
    }

    /// Learns from a refusal of `sent` tokens that no more than `most` are taken.
    pub(crate) fn learn_too_long(&self, model: &str, sent: Tokens, most: Tokens, proof: Proof) {
        lock(&self.state).known.size_limit.learn_refused(model, sent, most, proof);
    }

    /// Learns that the provider accepted so many tokens.
    pub(crate) fn learn_accepted(&self, model: &str, sent: Tokens) {
        lock(&self.state).known.size_limit.learn_accepted(model, sent);
    }

    /// Learns that the provider refused what was changed.
    pub(crate) fn refused(&self) {
        lock(&self.state).known.refused = true;
    }

    /// Tells, once in a session, that it is time to say that it no longer fits without us.
    pub(crate) fn tell_needed(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).told_needed, true)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

    fn send(sessions: &Sessions, words: &[&str]) -> Found {
        let history = parse(chat(words)).unwrap();
        let found = sessions.find(&history, &chain(&history));
        let memory = found.session.known().state.memory;
        let resent = Arc::new(resend(Arc::new(parse(chat(words)).unwrap()), &memory));
        sessions.commit(&found.session, &chain(&history), &Sending::Again(&resent), Millis(0)).unwrap();
        found
    }

    fn registry(most: usize) -> Sessions {
        Sessions::new(most, Keeping::Nothing)
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
        assert!(!branch.new && !branch.session.known().state.memory.is_empty());
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
        assert_eq!(lock(&sessions.registry).owners.len(), 2);
        assert_eq!(lock(&sessions.registry).said_in.len(), 0);
    }

    #[test]
    fn a_conversation_whose_beginning_was_rewritten_is_known_by_what_the_model_said() {
        let sessions = registry(8);
        let words = ["s", "1", "two", "3", "four", "5", "six", "7"];
        send(&sessions, &words);
        let rewritten: Vec<&str> = ["other"].into_iter().chain(words.into_iter().skip(1)).collect();
        let found = send(&sessions, &[&rewritten[..], &["eight", "9"]].concat());
        assert!(!found.new && !found.session.known().state.memory.is_empty());
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
            found.session.known().state.memory.verdicts().count()
        };
        let counts: Vec<usize> = (0..30).map(remembered).collect();
        assert!(counts.iter().all(|count| *count <= words.len() + 2), "{counts:?}");
    }

    #[test]
    fn what_cannot_be_kept_is_not_remembered() {
        let keeping = Keeping::Scripted(Box::new(|_| anyhow::bail!("the disk is full")));
        let sessions = Sessions::new(8, keeping);
        let settings = Settings::new(Policy::shipped("steady").unwrap());
        let fitted = fit(chat(&["s", "one"]), &Memory::default(), &settings, Millis(0)).unwrap();
        let chain = chain(&fitted.history);
        let session = sessions.find(&fitted.history, &chain).session;
        let plan = Arc::new(fitted.plan);
        let client = Arc::default();
        let sending = Sending::Planned { history: &fitted.history, plan: &plan, client: &client };
        assert!(sessions.commit(&session, &chain, &sending, Millis(0)).is_err());
        assert!(session.known().state.memory.is_empty());
    }
}
