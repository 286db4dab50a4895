//! What is sent when not everything goes well.

use super::{
    super::sessions::{Commit, Keeping, Scripted},
    *,
};

/// A conversation in which an agent ran its tests `runs` times; the last run is what is asked about now.
fn conversation(runs: usize) -> Vec<u8> {
    let exchange = |number: usize| {
        let log: String = (0..300).map(|line| format!("test case_{number}_{line} ... ok\\n")).collect();
        format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{number}","type":"function","function":{{"name":"bash","arguments":"{{\"command\":\"cargo test\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{number}","content":"{log}"}}"#
        )
    };
    let exchanges: String = (0..runs).map(exchange).collect();
    let request = format!(
        r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"Run the tests."}}{exchanges}]}}"#
    );
    request.into_bytes()
}

fn job(runs: usize) -> Job {
    Job { body: Arc::new(conversation(runs)), format: Format::Chat, model: None, counts_only: false }
}

fn planner(keep: Scripted) -> Arc<Planner> {
    // Shortens logs before they are first sent, and nothing later.
    let toml = "about = ''\n[[step]]\nwhen = 'birth'\nselect = { tools = ['test'], tokens_over = 800 }\ndo = 'digest'";
    let policy = Policy::from_toml("births", toml, &[]).unwrap();
    Arc::new(Planner::new(
        policy,
        None,
        false,
        Duration::from_secs(60),
        Sessions::new(8, Keeping::Scripted(keep)),
    ))
}

fn prepared(planner: &Arc<Planner>, runs: usize) -> Prepared {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    runtime.block_on(prepare(planner, job(runs))).unwrap()
}

fn check(prepared: &Prepared, how: How, fault: Option<&str>, changed: bool) {
    let found = (prepared.how, prepared.fault.as_ref().map(Fault::name), prepared.request.is_some());
    assert_eq!(found, (how, fault, changed), "{:?}", prepared.fault);
}

#[test]
fn a_long_output_is_shortened_before_it_is_first_sent() {
    let planner = planner(Box::new(|_| Ok(())));
    check(&prepared(&planner, 1), How::Fitted, None, true);
}

#[test]
fn what_cannot_be_kept_is_not_hidden() {
    let planner = planner(Box::new(|_| anyhow::bail!("the disk is full")));
    check(&prepared(&planner, 1), How::Raw, Some("keep"), false);
}

#[test]
fn what_was_hidden_stays_hidden_when_nothing_more_can_be_kept() {
    let calls = AtomicU8::new(0);
    let keep = move |_: &Commit<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(()),
        _ => anyhow::bail!("the disk is full"),
    };
    let planner = planner(Box::new(keep));
    let first = prepared(&planner, 1).request.unwrap();
    let second = prepared(&planner, 2);
    check(&second, How::Resent, Some("keep"), true);
    let second = second.request.unwrap();
    assert!(second.starts_with(first.strip_suffix(b"]}").unwrap()));
    assert!(second.ends_with(&conversation(2)[conversation(1).len() - 2..]), "what is new is whole");
}

#[test]
fn a_conversation_first_seen_in_mid_flight_counts_as_sent() {
    let planner = planner(Box::new(|_| Ok(())));
    let sent = prepared(&planner, 3).request.unwrap();
    let old = conversation(2);
    assert!(sent.starts_with(old.strip_suffix(b"]}").unwrap()), "what was sent before us stays as it is");
    assert!(sent.len() < conversation(3).len(), "what is new is shortened");
}

#[test]
fn the_first_to_decide_decides() {
    let ticket = Ticket::default();
    assert!(ticket.take(Ticket::CLOCK));
    assert!(!ticket.take(Ticket::PLAN));
}
