//! What is sent when not everything goes well.

use super::{
    super::sessions::{CommitRequest, ScriptedStore, SessionStorage},
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

fn job(runs: usize) -> PlanJob {
    let body = Arc::new(conversation(runs));
    PlanJob {
        accepts: CacheFields::default(),
        body,
        format: Format::Chat,
        model: None,
        counts_only: false,
        client: Arc::default(),
        server: "",
    }
}

fn planner(keep: ScriptedStore) -> Arc<Planner> {
    // Shortens logs before they are first sent, and nothing later.
    let toml = "about = ''\n[[step]]\nwhen = 'birth'\nselect = { tools = ['test'], tokens_over = 800 }\ndo = 'digest'";
    let policy = Policy::from_toml("births", toml, &[]).unwrap();
    Arc::new(Planner::new(
        policy,
        None,
        false,
        Duration::from_secs(60),
        ProxySessions::new(8, SessionStorage::Scripted(keep)),
    ))
}

fn prepared(planner: &Arc<Planner>, runs: usize) -> PreparedRequest {
    runtime().block_on(prepare_in_time(planner, job(runs))).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

/// Prepares the conversation after its client wrote the first message again in other words.
fn prepared_rewritten(planner: &Arc<Planner>, runs: usize) -> PreparedRequest {
    let text = String::from_utf8(conversation(runs)).unwrap();
    let body = text.replacen("Run the tests.", REWRITTEN, 1).into_bytes();
    runtime().block_on(prepare_in_time(planner, PlanJob { body: Arc::new(body), ..job(runs) })).unwrap()
}

const REWRITTEN: &str = "Run the tests. It is Tuesday.";

fn check(prepared: &PreparedRequest, how: Treatment, fault: Option<&str>, changed: bool) {
    let found = (prepared.how, prepared.fault.as_ref().map(PlanFailure::name), prepared.request.is_some());
    assert_eq!(found, (how, fault, changed), "{:?}", prepared.fault);
}

#[test]
fn a_long_output_is_shortened_before_it_is_first_sent() {
    let planner = planner(Box::new(|_| Ok(())));
    check(&prepared(&planner, 1), Treatment::Fitted, None, true);
}

#[test]
fn what_cannot_be_kept_is_not_hidden() {
    let planner = planner(Box::new(|_| anyhow::bail!("the disk is full")));
    check(&prepared(&planner, 1), Treatment::Raw, Some("keep"), false);
}

#[test]
fn what_was_hidden_stays_hidden_when_nothing_more_can_be_kept() {
    let calls = AtomicU8::new(0);
    let keep = move |_: &CommitRequest<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(()),
        _ => anyhow::bail!("the disk is full"),
    };
    let planner = planner(Box::new(keep));
    let first = prepared(&planner, 1).request.unwrap();
    let second = prepared(&planner, 2);
    check(&second, Treatment::Resent, Some("keep"), true);
    let second = second.request.unwrap();
    assert!(second.starts_with(first.strip_suffix(b"]}").unwrap()));
    assert!(second.ends_with(&conversation(2)[conversation(1).len() - 2..]), "what is new is whole");
}

#[test]
fn what_the_provider_refused_is_not_repeated() {
    let next = |decide: fn(PreparedRequest, &ProxySessions)| {
        let mut planner = planner(Box::new(|_| Ok(())));
        decide(prepared(&planner, 1), &planner.sessions);
        // A policy that hides nothing repeats what was hidden.
        Arc::get_mut(&mut planner).unwrap().policy = Policy::find_shipped("none").unwrap().into();
        prepared(&planner, 2).request.is_some()
    };
    assert!(next(|mut first, _| first.record_acceptance()), "what was accepted is repeated");
    assert!(next(|first, _| drop(first)), "what a client did not wait for is taken for accepted");
    assert!(!next(|mut first, sessions| first.record_refusal(sessions)));
}

#[test]
fn a_request_under_way_counts_until_it_is_refused() {
    let mut planner = planner(Box::new(|_| Ok(())));
    let mut first = prepared(&planner, 1);
    Arc::get_mut(&mut planner).unwrap().policy = Policy::find_shipped("none").unwrap().into();
    let mut second = prepared(&planner, 2);
    assert!(second.request.is_some(), "what is under way is repeated");
    // The answers come in another order.
    second.record_acceptance();
    first.record_refusal(&planner.sessions);
    assert!(prepared(&planner, 3).request.is_some(), "what the second request hid was accepted");
}

#[test]
fn a_conversation_first_seen_in_mid_flight_counts_as_sent() {
    let planner = planner(Box::new(|_| Ok(())));
    let sent = prepared(&planner, 3).request.unwrap();
    let old = conversation(2);
    assert!(sent.starts_with(old.strip_suffix(b"]}").unwrap()), "what was sent before us is unchanged");
    assert!(sent.len() < conversation(3).len(), "what is new is shortened");
}

#[test]
fn the_first_to_decide_decides() {
    let race = PlanRace::default();
    assert!(race.claim_decision(PlanRace::CLOCK));
    assert!(!race.claim_decision(PlanRace::PLAN));
}

#[test]
fn a_late_request_whose_client_rewrote_its_history_hides_what_was_hidden() {
    let mut planner = planner(Box::new(|_| Ok(())));
    let mut sent = Bytes::new();
    for runs in 1..=4 {
        sent = prepared(&planner, runs).request.unwrap();
    }
    let before = String::from_utf8(sent.to_vec()).unwrap().replacen("Run the tests.", REWRITTEN, 1);
    let before = before.strip_suffix("]}").unwrap();
    Arc::get_mut(&mut planner).unwrap().time_limit = Duration::ZERO;
    // Others are planned for, so that this plan cannot begin.
    let others = u32::try_from(planner.at_once.available_permits()).unwrap();
    let others = Arc::clone(&planner.at_once).try_acquire_many_owned(others).unwrap();
    let late = prepared_rewritten(&planner, 5);
    drop(others);
    check(&late, Treatment::Resent, Some("late"), true);
    let late = late.request.unwrap();
    assert!(late.starts_with(before.as_bytes()), "what was hidden is hidden again");
    Arc::get_mut(&mut planner).unwrap().time_limit = Duration::from_secs(60);
    let next = prepared_rewritten(&planner, 6);
    check(&next, Treatment::Fitted, None, true);
    let next = next.request.unwrap();
    assert!(next.starts_with(late.strip_suffix(b"]}").unwrap()), "and stays hidden");
    assert!(next.len() < late.len() + 3000, "what is new is hidden as ever");
}

#[test]
fn a_plan_is_not_late_while_its_thread_does_not_run() {
    let clock = WorkClock::default();
    let limit = Duration::from_millis(1);
    let slow = |time| Box::pin(async move { tokio::time::sleep(Duration::from_millis(time)).await });
    assert!(runtime().block_on(async { in_time(slow(80), limit, &clock).await }).is_some(), "not begun");
    if cfg!(target_os = "linux") {
        // The thread that begins is this one, which only waits from now on.
        let waits = std::thread::scope(|scope| {
            let (began, begun) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let clock = &clock;
            scope.spawn(move || {
                clock.start_work();
                began.send(()).unwrap();
                let _ = ended.recv();
            });
            begun.recv().unwrap();
            let waits = runtime().block_on(async { in_time(slow(80), limit * 20, clock).await });
            drop(end);
            waits
        });
        assert!(waits.is_some(), "it sleeps");
    }
}

#[test]
fn a_plan_that_waits_for_a_vocabulary_is_not_late() {
    let clock = WorkClock::default();
    let slow = Box::pin(async { tokio::time::sleep(LONGEST_WAIT + Duration::from_millis(300)).await });
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (clock, end) = (&clock, end);
        let (began, begun) = std::sync::mpsc::channel();
        scope.spawn(move || {
            clock.start_work();
            clock.pause_during(|| {
                began.send(()).unwrap();
                let _ = ended.recv();
            });
        });
        begun.recv().unwrap();
        let waits = runtime().block_on(async { in_time(slow, Duration::from_millis(5), clock).await });
        drop(end);
        assert!(waits.is_some());
    });
}

#[test]
fn a_plan_that_is_worked_on_for_too_long_is_late() {
    let (clock, done) = (WorkClock::default(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (clock, done) = (&clock, &done);
        scope.spawn(move || {
            clock.start_work();
            while !done.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        });
        let never = Box::pin(std::future::pending::<()>());
        let started = Instant::now();
        assert!(runtime().block_on(in_time(never, Duration::from_millis(5), clock)).is_none());
        assert!(started.elapsed() < PATIENCE);
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_provider_that_takes_its_time_leaves_time_to_plan() {
    let mut planner = planner(Box::new(|_| Ok(())));
    Arc::get_mut(&mut planner).unwrap().time_limit = Duration::from_millis(50);
    let limit = |planner: &Planner| planner.time_limit_for(Format::Chat).as_millis();
    assert_eq!(limit(&planner), 50);
    planner.answered_in(Format::Chat, Duration::from_secs(4));
    assert_eq!((limit(&planner), planner.time_limit_for(Format::Gemini).as_millis()), (400, 50));
    planner.answered_in(Format::Chat, Duration::ZERO);
    assert_eq!(limit(&planner), 300);
    for _ in 0..20 {
        planner.answered_in(Format::Chat, Duration::from_secs(600));
    }
    assert_eq!(limit(&planner), LONGEST_WAIT.as_millis());
    Arc::get_mut(&mut planner).unwrap().time_limit = Duration::ZERO;
    assert_eq!(limit(&planner), 0, "who asks for no time gets none");
}
