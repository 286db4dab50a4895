//! What is still warm of the latest conversations. Takes requests; gives each the state of the conversation that it goes on
//! with, by the bytes that they have in common. A cache: it is bounded, may vanish at any time, and never changes a byte
//! that is sent.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use trimtab_core::{Format, History, WarmState};

use super::buffers::BufferPool;

/// How many conversations are kept warm: each is compared with every request, at some ten nanoseconds.
const CONVERSATIONS: usize = 256;

/// After which of the last messages a conversation is looked for, counted from the end. Agents move their cache markers
/// from request to request, so the last messages may come again with other bytes.
const LOOKED_AT: [usize; 3] = [1, 3, 5];

/// How many bytes before the end of a message must be the same.
const TAIL: usize = 32;

/// What a request takes while it is warm, in bytes per byte of it and per block; measured on recorded sessions.
const PER_BYTE: usize = 2;
const PER_BLOCK: usize = 1024;

/// A request is surely worked on soon where it adds at most so many bytes to a conversation, and the one before took at most
/// so long.
const SOON_BYTES: usize = 64 * 1024;
const SOON: Duration = Duration::from_millis(5);

/// The states of conversations, the least recently used of them forgotten first.
pub(crate) struct WarmCache {
    table: Mutex<SlotTable>,
    most: usize,
    buffers: BufferPool,
}

#[derive(Default)]
struct SlotTable {
    slots: Vec<WarmSlot>,
    bytes: usize,
    made: u64,
    uses: u64,
}

struct WarmSlot {
    number: u64,
    warm: Arc<Mutex<WarmState>>,
    format: Format,
    /// Ends of messages, each with the bytes before it.
    marks: [(usize, [u8; TAIL]); LOOKED_AT.len()],
    bytes: usize,
    used: u64,
    used_at: Instant,
    /// How long the work on the latest request took.
    took: Duration,
}

/// A state that somebody works with.
struct ClaimedState {
    number: u64,
    warm: Arc<Mutex<WarmState>>,
    soon: bool,
}

impl WarmCache {
    /// Keeps states of about so many bytes.
    pub(crate) fn new(most: usize) -> WarmCache {
        WarmCache { table: Mutex::default(), most, buffers: BufferPool::default() }
    }

    /// Returns the buffers of requests that another one has followed.
    pub(crate) fn buffers(&self) -> &BufferPool {
        &self.buffers
    }

    /// Works with the state of the conversation that a request goes on with; with a new one where there is none. Requests of
    /// the same conversation wait for each other.
    pub(crate) fn with_state<T>(
        &self,
        request: &[u8],
        format: Format,
        work: impl FnOnce(&mut WarmState) -> T,
    ) -> T {
        let claimed = self.claim_slot(request, format);
        let mut state = claimed.warm.lock().unwrap_or_else(|broken| {
            // Whoever had it failed in the middle of its work.
            let mut state = broken.into_inner();
            *state = WarmState::default();
            state
        });
        claimed.warm.clear_poison();
        self.work_with(&claimed, &mut state, work)
    }

    /// Does the same where the work is surely done soon and nobody else is at it; nothing where that is not so.
    pub(crate) fn with_state_if_free<T>(
        &self,
        request: &[u8],
        format: Format,
        work: impl FnOnce(&mut WarmState) -> T,
    ) -> Option<T> {
        let claimed = Some(self.claim_slot(request, format)).filter(|claimed| claimed.soon)?;
        let mut state = claimed.warm.try_lock().ok()?;
        Some(self.work_with(&claimed, &mut state, work))
    }

    /// Forgets states that were not used for so long, but for the latest of about so many bytes.
    pub(crate) fn forget_idle(&self, idle: Duration, most: usize) {
        let mut forgotten = Vec::new();
        let mut shelf = self.lock_table();
        while shelf.bytes > most
            && let Some(slot) = shelf.take_oldest(|slot| slot.used_at.elapsed() >= idle)
        {
            forgotten.push(slot);
        }
        // What is large takes a while to give back: nobody waits for that.
        drop(shelf);
        if !forgotten.is_empty() {
            self.buffers.drop_spare();
        }
    }

    fn work_with<T>(
        &self,
        claimed: &ClaimedState,
        state: &mut WarmState,
        work: impl FnOnce(&mut WarmState) -> T,
    ) -> T {
        let started = Instant::now();
        let before = state.latest().cloned();
        let done = work(state);
        if let Some(latest) = state.latest() {
            self.settle_slot(claimed, latest, started.elapsed());
        }
        let unheld = before.and_then(Arc::into_inner).and_then(History::reclaim_bytes);
        unheld.into_iter().for_each(|buffer| self.buffers.give_back(buffer));
        done
    }

    fn claim_slot(&self, request: &[u8], format: Format) -> ClaimedState {
        let mut shelf = self.lock_table();
        shelf.uses += 1;
        let uses = shelf.uses;
        let known = shelf.slots.iter_mut().filter(|slot| slot.format == format);
        let depths = known.filter_map(|slot| Some((slot.shared_depth(request)?, slot)));
        if let Some((depth, slot)) = depths.max_by_key(|(depth, _)| *depth) {
            slot.used = uses;
            slot.used_at = Instant::now();
            let soon = request.len() - depth <= SOON_BYTES && slot.took <= SOON;
            return ClaimedState { number: slot.number, warm: Arc::clone(&slot.warm), soon };
        }
        shelf.made += 1;
        ClaimedState { number: shelf.made, warm: Arc::default(), soon: false }
    }

    fn settle_slot(&self, claimed: &ClaimedState, latest: &History, took: Duration) {
        let bytes = latest.bytes().len() * PER_BYTE + latest.blocks().len() * PER_BLOCK;
        let mut shelf = self.lock_table();
        let used = shelf.uses;
        let (number, warm) = (claimed.number, Arc::clone(&claimed.warm));
        let slot = WarmSlot {
            number,
            warm,
            format: latest.format(),
            marks: comparison_marks(latest),
            bytes,
            used,
            used_at: Instant::now(),
            took,
        };
        shelf.bytes += bytes;
        if let Some(index) = shelf.slots.iter().position(|known| known.number == number) {
            shelf.bytes -= shelf.slots.swap_remove(index).bytes;
        }
        shelf.slots.push(slot);
        shelf.forget_oldest(self.most);
    }

    fn lock_table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn forget_oldest(&mut self, most: usize) {
        while self.slots.len() > CONVERSATIONS || self.bytes > most {
            if self.take_oldest(|_| true).is_none() {
                return;
            }
        }
    }

    /// Takes out the state that was used least recently, where it is one of these.
    fn take_oldest(&mut self, wanted: impl Fn(&WarmSlot) -> bool) -> Option<WarmSlot> {
        let (index, slot) = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used)?;
        if !wanted(slot) {
            return None;
        }
        let slot = self.slots.swap_remove(index);
        self.bytes -= slot.bytes;
        Some(slot)
    }
}

impl WarmSlot {
    /// Tells how far a request begins as the latest of this conversation did, where it goes on with it.
    fn shared_depth(&self, request: &[u8]) -> Option<usize> {
        let differs = |(end, tail): &(usize, [u8; TAIL])| {
            let start = end.checked_sub(TAIL);
            start.is_some_and(|start| request.get(start..*end) != Some(tail.as_slice()))
        };
        // Two conversations may go on with the same words at the same place: what precedes it must be the same too.
        let same = self.marks.iter().rposition(differs).map_or(0, |index| index + 1);
        self.marks.get(same).map(|(end, _)| *end).filter(|end| *end > 0)
    }
}

/// Returns where a later request is compared; an end of zero is never the same.
fn comparison_marks(latest: &History) -> [(usize, [u8; TAIL]); LOOKED_AT.len()] {
    let messages = latest.messages();
    LOOKED_AT.map(|back| {
        let end = messages
            .len()
            .checked_sub(back)
            .and_then(|index| messages.get(index))
            .map(|last| last.span.end());
        let tail = end.and_then(|end| latest.bytes().get(end.checked_sub(TAIL)?..end)?.try_into().ok());
        end.zip(tail).unwrap_or((0, [0; TAIL]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(words: &[&str]) -> Vec<u8> {
        let message =
            |word: &&str| format!(r#"{{"role":"user","content":"{word} and what else belongs to it"}}"#);
        let messages: Vec<String> = words.iter().map(message).collect();
        format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.join(",")).into_bytes()
    }

    /// Follows a request; returns how many blocks of it were known.
    fn check(cache: &WarmCache, words: &[&str]) -> usize {
        let request = chat(words);
        cache.with_state(&request.clone(), Format::Chat, |warm| {
            let history = warm.read(request, Some(Format::Chat)).unwrap();
            warm.follow_request(&history, "gpt-5");
            history.reused_blocks()
        })
    }

    #[test]
    fn a_request_goes_on_with_the_conversation_that_it_continues() {
        let cache = WarmCache::new(1 << 20);
        assert_eq!(check(&cache, &["one", "two"]), 0);
        assert_eq!(check(&cache, &["another"]), 0);
        assert_eq!(check(&cache, &["one", "two", "three"]), 2);
        assert_eq!(check(&cache, &["another", "and", "on"]), 1);
    }

    #[test]
    fn the_same_words_at_the_same_place_are_not_the_same_conversation() {
        let cache = WarmCache::new(1 << 20);
        check(&cache, &["one", "two", "both"]);
        assert_eq!(check(&cache, &["six", "ten", "both"]), 0);
        assert_eq!(check(&cache, &["one", "two", "both", "more"]), 3);
    }

    #[test]
    fn only_what_goes_on_with_a_conversation_is_done_soon() {
        let cache = WarmCache::new(1 << 20);
        let soon = |words: &[&str]| cache.with_state_if_free(&chat(words), Format::Chat, |_| ()).is_some();
        assert!(!soon(&["one"]));
        check(&cache, &["one"]);
        let long = "word ".repeat(SOON_BYTES);
        assert_eq!([soon(&["one", "two"]), soon(&["one", &long]), soon(&["other"])], [true, false, false]);
    }

    #[test]
    fn last_messages_that_were_written_again_are_read_again() {
        let cache = WarmCache::new(1 << 20);
        check(&cache, &["one", "two", "three", "four"]);
        assert_eq!(check(&cache, &["one", "two", "3", "4", "five"]), 2);
    }

    #[test]
    fn the_same_beginning_alone_takes_nothing_away() {
        let cache = WarmCache::new(1 << 20);
        let words = ["1", "2", "3", "4", "5", "6", "7"];
        check(&cache, &words);
        assert_eq!(check(&cache, &["1", "other"]), 0);
        assert_eq!(check(&cache, &[&words[..], &["8"]].concat()), 7);
    }

    #[test]
    fn what_was_used_least_recently_is_forgotten_first() {
        let cache = WarmCache::new(3 * (PER_BLOCK + 2 * chat(&["a"]).len()) + PER_BLOCK);
        for word in ["a", "b", "c"] {
            check(&cache, &[word]);
        }
        assert_eq!(check(&cache, &["a"]), 1);
        check(&cache, &["d"]);
        assert_eq!(check(&cache, &["b"]), 0);
        assert!(cache.lock_table().bytes <= cache.most);
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten_but_for_the_latest() {
        let cache = WarmCache::new(1 << 20);
        for word in ["a", "b", "c"] {
            check(&cache, &[word]);
        }
        let one = PER_BLOCK + 2 * chat(&["a"]).len();
        cache.forget_idle(Duration::from_secs(3600), one);
        assert_eq!(cache.lock_table().slots.len(), 3, "all were used just now");
        cache.forget_idle(Duration::ZERO, one);
        assert_eq!(check(&cache, &["c", "more"]), 1);
        assert_eq!(check(&cache, &["b", "more"]), 0);
    }

    #[test]
    fn a_state_whose_owner_failed_is_not_used_again() {
        let cache = WarmCache::new(1 << 20);
        check(&cache, &["one"]);
        let request = chat(&["one", "two"]);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cache.with_state(&request, Format::Chat, |_| panic!("a fault of ours"))
        }));
        assert!(failed.is_err());
        assert_eq!(check(&cache, &["one", "two"]), 0);
    }
}
