//! Long lists: 20,000 sessions, and a session of 2,000 requests. A page shows a part and reads no more.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::server::{World, working};

/// How long a page may take here: the promise is a second, and tests run unoptimized beside each other.
const LONGEST: Duration = Duration::from_secs(8);

#[test]
fn twenty_thousand_sessions_and_two_thousand_requests_are_shown_in_parts() {
    let world = World::new();
    world.keep("a", &working("First of many.", 2), "none", 50_000, 1_000);
    world.keep("a", &working("First of many.", 4), "none", 50_000, 2_000);
    let database = Connection::open(world.path("kept.db")).unwrap();
    // The same request again and again, each at another time; then the same session.
    database.execute_batch(include_str!("many.sql")).unwrap();
    drop(database);
    let page = world.page("a", &[]);
    let timed = |path: &str| {
        let began = Instant::now();
        let shown = page.get(path);
        assert_eq!(shown.status, 200, "{path}: {}", shown.text);
        assert!(began.elapsed() < LONGEST, "{path} took {:?}", began.elapsed());
        assert!(shown.text.len() < 400_000, "{path} has {} bytes", shown.text.len());
        eprintln!("{path}: {:?}, {} bytes", began.elapsed(), shown.text.len());
        shown
    };
    let first = timed("/");
    assert!(first.text.contains("Still adding up"), "the first page does not wait for all of them");
    let list = timed("/trimtab/sessions");
    assert!(list.text.contains("20,000 sessions") && list.text.contains("part 1 of 400"));
    timed("/trimtab/sessions?page=400");
    let session = timed("/trimtab/sessions/s1");
    assert_eq!(session.figure("requests"), "2,000");
    assert!(session.text.contains("part 1 of 20"));
    timed("/trimtab/sessions/s1?page=20");
    timed("/trimtab/sessions/s1/requests/2");
    // Looking again goes on adding up, until all are in.
    let mut looks = 0;
    while timed("/").text.contains("Still adding up") {
        looks += 1;
        assert!(looks < 100);
    }
}
