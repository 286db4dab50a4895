//! Who sees what: projects keep to themselves, secrets are covered, and what is too old or too much goes by itself.

use trimtab_core::{Millis, block_handle};
use trimtab_store::{
    ForgetSelection, Retention, RunMode, SearchQuery, SearchWithin, Secrets, SessionId, SessionLabel,
    SessionPageQuery, Store,
};

use crate::common::{Kept, Said, fit_and_keep_as, keep, keep_named, model, request, settings, tool, user};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn keep_in(store: &dyn Store, project: Option<&str>, said: &[Said], at: i64) -> Kept {
    let label = SessionLabel { name: None, project };
    fit_and_keep_as(store, request(said), &settings("none", 1_000_000), at, label).unwrap()
}

fn found(store: &dyn Store, words: &str, within: SearchWithin<'_>) -> Vec<(String, String)> {
    let query = SearchQuery { words, most: 10, within, secrets: &Secrets::default() };
    let found = store.search(&query).unwrap();
    found.into_iter().map(|found| (found.session.to_string(), found.text)).collect()
}

pub(crate) fn two_projects_that_say_the_same_words_keep_to_their_own_sessions(store: &dyn Store) {
    let first = [user("Fix the build.")];
    let one = keep_in(store, Some("/a"), &first, 1).session;
    let other = keep_in(store, Some("/b"), &first, 2).session;
    let nobody = keep_in(store, None, &first, 3).session;
    assert!(one != other && other != nobody && one != nobody);
    // Even the same answer makes them no common conversation.
    let answered = [user("Fix the build."), model("Done."), user("Thanks.")];
    assert_eq!(keep_in(store, Some("/a"), &answered, 4).session, one);
    assert_eq!(keep_in(store, Some("/b"), &answered, 5).session, other);
    let rewritten = [user("Fix the build."), model("Done."), user("No, again.")];
    assert_eq!(keep_in(store, Some("/b"), &rewritten, 6).session, other);
    assert_eq!(keep_in(store, Some("/a"), &rewritten, 7).session, one);
    let projects: Vec<_> = store.sessions().unwrap().into_iter().map(|session| session.project).collect();
    assert_eq!(projects, [Some("/a".to_owned()), Some("/b".to_owned()), None]);
}

pub(crate) fn a_conversation_that_moves_on_tells_its_project_later(store: &dyn Store) {
    let begun = [user("Hi"), model("Ho"), user("Go on.")];
    let session = keep_in(store, None, &begun, 1).session;
    let later = [&begun[..], &[model("So."), user("More.")]].concat();
    assert_eq!(keep_in(store, Some("/a"), &later, 2).session, session);
    assert_eq!(store.sessions().unwrap()[0].scope(), Some("/a"));
    let without = [&later[..], &[model("Well."), user("Bye.")]].concat();
    assert_eq!(keep_in(store, None, &without, 3).session, session, "it holds all that was said");
    assert_eq!(store.sessions().unwrap()[0].scope(), Some("/a"));
}

pub(crate) fn search_stays_in_its_scope(store: &dyn Store) {
    let a = keep_in(store, Some("/a"), &[user("the zebra of project a"), tool("make", "shared zebra")], 1);
    let b = keep_in(store, Some("/b"), &[user("the zebra of project b"), tool("make", "shared zebra")], 2);
    keep_in(store, None, &[user("the zebra of nobody")], 3);
    let named = keep_named(store, &[user("the zebra of conversation seven")], 4, Some("conv-7")).session;
    let sessions = |within| {
        let mut found = found(store, "zebra", within);
        found.sort();
        found
    };
    let row = |session: &Kept, text: &str| (session.session.to_string(), text.to_owned());
    assert_eq!(
        sessions(SearchWithin::Scope("/b")),
        [row(&b, "shared zebra"), row(&b, "the zebra of project b")],
        "what two projects hold is shown as their own"
    );
    assert_eq!(
        sessions(SearchWithin::Session(a.session)),
        [row(&a, "shared zebra"), row(&a, "the zebra of project a")]
    );
    assert_eq!(
        sessions(SearchWithin::Scope("conv-7")),
        [(named.to_string(), "the zebra of conversation seven".to_owned())]
    );
    assert_eq!(sessions(SearchWithin::Scope("/c")), []);
    assert_eq!(sessions(SearchWithin::Everything).len(), 5);
}

pub(crate) fn a_block_tells_who_holds_it(store: &dyn Store) {
    let a = keep_in(store, Some("/a"), &[user("only a"), tool("make", "shared")], 1);
    let b = keep_in(store, Some("/b"), &[user("only b"), tool("make", "shared")], 2);
    let history = &a.fitted.history;
    let handle = |index: usize| block_handle(history, &history.blocks()[index]);
    let holders = |handle: &str| -> Vec<_> {
        store.holders(handle).unwrap().into_iter().map(|holder| (holder.session, holder.project)).collect()
    };
    assert_eq!(holders(&handle(1)), [(a.session, Some("/a".to_owned()))]);
    assert_eq!(holders(&handle(3)), [(b.session, Some("/b".to_owned())), (a.session, Some("/a".to_owned()))]);
    assert!(store.holders("0123456789ab").unwrap_err().to_string().contains("no block has the handle"));
    assert!(store.holders("x").unwrap_err().to_string().contains("is not a handle"));
}

pub(crate) fn secrets_are_neither_shown_nor_found(store: &dyn Store) {
    let text = "port: 80\nDB_PASSWORD=hunter2\n";
    let kept = keep(store, &[user("Look."), tool("cat .env", text)], 1);
    let all = SearchWithin::Everything;
    assert_eq!(found(store, "DB_PASSWORD", all), [("s1".to_owned(), "DB_PASSWORD=[secret]".to_owned())]);
    assert_eq!(found(store, "hunter2", all), []);
    assert_eq!(found(store, "hunter2 port", all), []);
    let query = SearchQuery { words: "hunter2", most: 9, within: all, secrets: &Secrets::none() };
    assert_eq!(store.search(&query).unwrap()[0].text, "DB_PASSWORD=hunter2");
    let history = &kept.fitted.history;
    let handle = block_handle(history, history.blocks().last().unwrap());
    assert_eq!(store.recall(&handle).unwrap(), text.as_bytes(), "the original is whole");
}

pub(crate) fn a_retention_forgets_the_oldest_and_spares_what_is_live(store: &dyn Store) {
    let now = 100 * DAY;
    for (days, word) in [(99, "ancient"), (40, "old"), (2, "recent"), (0, "live")] {
        keep(store, &[user(word)], now - days * DAY - 1);
    }
    let left = |retention: Retention| {
        store.forget(&ForgetSelection::Beyond(retention, Millis(now)), RunMode::Do).unwrap();
        store.sessions().unwrap().len()
    };
    assert_eq!(left(Retention::default()), 4);
    assert_eq!(left(Retention { keep_for: Some(50 * DAY), keep_at_most: None }), 3);
    assert_eq!(left(Retention { keep_for: None, keep_at_most: Some(1 << 30) }), 3);
    assert_eq!(left(Retention { keep_for: Some(1), keep_at_most: None }), 1, "what is live stays");
    keep(store, &[user("once more")], now - 3 * DAY);
    assert_eq!(left(Retention { keep_for: None, keep_at_most: Some(0) }), 1);
    assert_eq!(found(store, "live", SearchWithin::Everything).len(), 1);
}

pub(crate) fn a_list_of_sessions_is_read_page_by_page(store: &dyn Store) {
    for number in 0..7 {
        let project = if number % 2 == 0 { "/a" } else { "/b" };
        keep_in(store, Some(project), &[user(&format!("Number {number}."))], number);
    }
    let page = |scope, project, skip| {
        store.session_page(&SessionPageQuery { scope, project, skip, most: 2 }).unwrap()
    };
    let all = store.sessions().unwrap();
    let first = page(None, None, 0);
    assert_eq!((first.sessions.as_slice(), first.count, first.others), (&all[..2], 7, 0));
    assert_eq!(page(None, None, 6).sessions, all[6..]);
    let own: Vec<_> = all.iter().filter(|session| session.scope() == Some("/b")).cloned().collect();
    let second = page(Some("/b"), None, 2);
    assert_eq!((second.sessions.as_slice(), second.count, second.others), (&own[2..], 3, 4));
    assert_eq!(page(Some("/b"), Some("/a"), 0).count, 0, "another project is not in the own scope");
    assert_eq!(page(None, Some("/a"), 0).count, 4);
    assert_eq!(store.session(own[0].id).unwrap(), own[0]);
    assert!(store.session(SessionId(999)).is_err() && store.first_and_last(SessionId(999)).is_err());
    let requests = store.requests(own[0].id).unwrap();
    assert_eq!(
        store.first_and_last(own[0].id).unwrap(),
        (requests[0].clone(), requests.last().unwrap().clone())
    );
}
