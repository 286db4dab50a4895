//! What every engine promises about pins and hidings that are taken back.

use trimtab_core::{
    Handle, History, Memory, Millis, Policy, SentVerdict, Settings, Tokens, Verdict, block_handle, fit,
    memory::UndoWhen, parse,
};
use trimtab_store::{
    Append, Appended, ForgetSelection, NewWish, RunMode, SessionId, SessionLabel, Store, StoreError, Wish,
    WishKind,
};

use crate::common::{Kept, fit_and_keep, keep, remembered, request, settings, tool, user, working};

/// Long after every provider's cache is gone.
const COLD: i64 = 48 * 3_600_000;

/// Hides all but the latest five results.
fn hiding() -> Settings {
    let policy = Policy::shipped_with("recent", &[("keep_last".to_owned(), 5.0), ("batch".to_owned(), 1.0)])
        .expect("a policy");
    Settings::new(policy).with_budget(Tokens(1_000_000))
}

fn handle(history: &History, block: usize) -> Handle {
    Handle::parse(&block_handle(history, &history.blocks()[block])).unwrap()
}

fn wish(
    store: &dyn Store,
    session: Option<SessionId>,
    handle: Handle,
    kind: WishKind,
) -> Result<Wish, StoreError> {
    store.add_wish(&NewWish { session, handle, kind, at: Millis(7) })
}

fn send(store: &dyn Store, steps: usize, at: i64) -> Kept {
    fit_and_keep(store, request(&working(steps)), &hiding(), at, None).unwrap()
}

fn is_whole(kept: &Kept, block: usize) -> bool {
    kept.fitted.plan.decisions()[block].verdict == Verdict::Keep
}

/// Keeps a conversation with hidden results; gives it with the first of them.
fn hidden(store: &dyn Store) -> (Kept, usize, Handle) {
    let kept = send(store, 20, 1);
    let first = kept.fitted.plan.decisions().iter().position(|decision| decision.verdict != Verdict::Keep);
    let first = first.expect("the policy hides");
    let handle = handle(&kept.fitted.history, first);
    (kept, first, handle)
}

fn waits(store: &dyn Store, steps: usize) -> Option<UndoWhen> {
    let history = parse(request(&working(steps))).unwrap();
    let wishes = store.wishes(&history, &history.chain(), SessionLabel::default()).unwrap();
    assert_eq!(store.recognize(&history, SessionLabel::default()).unwrap().memory.wishes(), &wishes);
    wishes.undone_handles().next().unwrap().1.waits
}

pub(crate) fn a_pinned_block_is_whole_in_every_process_until_the_pin_is_taken_back(store: &dyn Store) {
    let (kept, block, handle) = hidden(store);
    assert_eq!(store.newest_wish().unwrap(), 0);
    let wish_kept = wish(store, None, handle, WishKind::Pin).unwrap();
    assert_eq!((wish_kept.session, wish_kept.step, wish_kept.at), (kept.session, 20, Millis(7)));
    assert!(store.newest_wish().unwrap() > 0, "a running process sees that something is new");
    assert_eq!(store.pins(None).unwrap(), [wish_kept]);
    assert_eq!(store.pins(Some(kept.session)).unwrap(), [wish_kept]);
    let again = send(store, 20, 2);
    assert!(is_whole(&again, block), "at once, though the cache is warm");
    let stored = store.request(again.request).unwrap();
    assert!(stored.hidden.iter().all(|(hidden, _)| usize::try_from(*hidden).unwrap() != block));
    assert!(
        store.request(kept.request).unwrap().hidden.len() > stored.hidden.len(),
        "what was sent before stays known"
    );
    assert!(is_whole(&send(store, 40, 3), block));
    wish(store, Some(kept.session), handle, WishKind::Unpin).unwrap();
    assert_eq!(store.pins(None).unwrap(), []);
    assert!(!is_whole(&send(store, 40, 4), block), "it is as old as it is");
    store.check_contents().unwrap();
}

pub(crate) fn an_undo_waits_until_it_is_free_and_is_granted_once(store: &dyn Store) {
    let (_, block, handle) = hidden(store);
    let mut memory =
        store.recognize(&parse(request(&working(20))).unwrap(), SessionLabel::default()).unwrap().memory;
    wish(store, None, handle, WishKind::Undo(UndoWhen::Free)).unwrap();
    memory.undo(handle, 20, UndoWhen::Free);
    assert_eq!(waits(store, 20), Some(UndoWhen::Free));
    let same = |store: &dyn Store, memory: &Memory, steps: usize| {
        let known =
            store.recognize(&parse(request(&working(steps))).unwrap(), SessionLabel::default()).unwrap();
        assert_eq!(
            remembered(&known.memory),
            remembered(memory),
            "memory is that of the process that wrote it"
        );
        assert_eq!(known.memory.wishes(), memory.wishes());
    };
    for (at, whole, waiting) in [(2, false, Some(UndoWhen::Free)), (COLD, true, None), (COLD + 1, true, None)]
    {
        let kept = send(store, 20, at);
        memory.remember_sent(&kept.fitted.plan, Millis(at));
        assert_eq!((is_whole(&kept, block), waits(store, 20)), (whole, waiting), "at {at}");
        same(store, &memory, 20);
    }
    // It grows old again, counted from the undo, and what is hidden then is not what was taken back.
    for at in [COLD + 2, 2 * COLD] {
        let kept = send(store, 60, at);
        memory.remember_sent(&kept.fitted.plan, Millis(at));
        assert_eq!((is_whole(&kept, block), waits(store, 60)), (false, None), "at {at}");
        same(store, &memory, 60);
    }
    wish(store, None, handle, WishKind::Undo(UndoWhen::Now)).unwrap();
    assert!(is_whole(&send(store, 60, 2 * COLD + 1), block), "a second time, and at once");
    store.check_contents().unwrap();
}

pub(crate) fn what_is_shown_again_is_said_to_a_process_that_hides_it_still(store: &dyn Store) {
    let (_, block, handle) = hidden(store);
    let bytes = request(&working(20));
    let mut known = store.recognize(&parse(bytes.clone()).unwrap(), SessionLabel::default()).unwrap();
    wish(store, None, handle, WishKind::Undo(UndoWhen::Now)).unwrap();
    assert!(is_whole(&send(store, 20, 2), block));
    let fitted = fit(bytes.clone(), &known.memory, &hiding(), Millis(3)).unwrap();
    assert_ne!(fitted.plan.decisions()[block].verdict, Verdict::Keep, "it looked before");
    let done = store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(3))).unwrap();
    let Appended::SaidBefore { verdicts, seen } = done else { panic!("two processes said two things") };
    assert_eq!(verdicts, [(known.chain[block], SentVerdict::WholeAgain)]);
    verdicts.into_iter().for_each(|(hash, verdict)| known.memory.remember(hash, verdict));
    known.seen = seen;
    let fitted = fit(bytes, &known.memory, &settings("none", 1_000_000), Millis(3)).unwrap();
    assert_eq!(fitted.plan.decisions()[block].verdict, Verdict::Keep);
    let done = store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(3))).unwrap();
    assert!(matches!(done, Appended::Stored { .. }), "{done:?}");
}

pub(crate) fn a_wish_is_kept_with_the_session_used_last_that_holds_the_block(store: &dyn Store) {
    let shared = tool("make", "the same result in both\n");
    let one = keep(store, &[user("one"), shared.clone()], 1);
    let two = keep(store, &[user("two"), shared], 2);
    let handle = handle(&one.fitted.history, one.fitted.history.blocks().len() - 1);
    assert_eq!(wish(store, None, handle, WishKind::Pin).unwrap().session, two.session);
    assert_eq!(store.pins(Some(one.session)).unwrap(), []);
    assert_eq!(wish(store, Some(one.session), handle, WishKind::Pin).unwrap().session, one.session);
    let history = &one.fitted.history;
    assert!(store.wishes(history, &history.chain(), SessionLabel::default()).unwrap().is_pinned(handle));
    wish(store, Some(two.session), handle, WishKind::Unpin).unwrap();
    assert_eq!(
        wish(store, None, handle, WishKind::Unpin).unwrap().session,
        one.session,
        "where there is a pin"
    );
    wish(store, Some(two.session), handle, WishKind::Pin).unwrap();
    assert!(!store.wishes(history, &history.chain(), SessionLabel::default()).unwrap().is_pinned(handle));
    assert_eq!(store.pins(None).unwrap().len(), 1, "the other session's pin holds");
}

pub(crate) fn wishes_that_cannot_be_kept_are_refused_with_the_reason(store: &dyn Store) {
    let (kept, _, hidden) = hidden(store);
    let other = keep(store, &[user("Something else")], 2);
    let question = handle(&kept.fitted.history, 1);
    let unknown = Handle([9; 6]);
    let refused = |session, handle, kind| wish(store, session, handle, kind).unwrap_err().to_string();
    let undo = WishKind::Undo(UndoWhen::Free);
    for (words, said) in [
        (refused(None, unknown, WishKind::Pin), "no block has the handle 090909090909"),
        (refused(Some(SessionId(99)), hidden, WishKind::Pin), "there is no session s99"),
        (refused(Some(other.session), hidden, WishKind::Pin), "session s2 holds no block"),
        (refused(None, question, undo), "is not hidden"),
        (refused(None, hidden, WishKind::Unpin), "is not pinned"),
    ] {
        assert!(words.contains(said), "{words}");
    }
    assert_eq!(store.newest_wish().unwrap(), 0, "nothing was kept");
}

pub(crate) fn a_forgotten_session_leaves_no_wish_behind(store: &dyn Store) {
    let (kept, _, handle) = hidden(store);
    let wished = wish(store, None, handle, WishKind::Pin).unwrap();
    keep(store, &[user("Something else")], 2);
    store.forget(&ForgetSelection::Sessions(vec![kept.session]), RunMode::Do).unwrap();
    assert_eq!(store.pins(None).unwrap(), []);
    let again = send(store, 20, 3);
    assert_ne!(again.session, wished.session);
    assert_eq!(store.pins(None).unwrap(), []);
}
