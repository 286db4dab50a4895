//! The proxy is killed under load, again and again: whatever it had hidden from a provider by then comes back from the store,
//! byte for byte.

use std::{
    io::{BufReader, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    TIGHT, good,
    originals::{Originals, request},
    running::Running,
    tally::{Chance, Tally},
    upstream::read_message,
};

/// Agents at once, and the calls after which each begins another conversation.
const AGENTS: usize = 4;
const LONGEST: usize = 40;

/// Leads conversations through a proxy until it is gone; gives back how far it came.
fn converse(address: &str, agent: usize, mut turn: usize, stop: &AtomicBool) -> usize {
    while !stop.load(Ordering::Relaxed) {
        let conversation = (turn / LONGEST) * AGENTS + agent;
        if ask(address, &request(conversation, turn % LONGEST)).is_none() {
            return turn;
        }
        turn += 1;
    }
    turn
}

fn ask(address: &str, body: &[u8]) -> Option<()> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).ok()?;
    connection.write_all(body).ok()?;
    read_message(&mut BufReader::new(connection)).map(drop)
}

fn check(kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags = [&TIGHT[..], &["--store", store.to_str().unwrap(), "--log", "quiet"]].concat();
    let upstream = good();
    let mut tally = Tally::new("kills");
    let mut originals = Originals::default();
    let mut chance = Chance(13);
    let mut turns = [0; AGENTS];
    for _ in 0..kills {
        let mut proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
        let before = upstream.came.lock().unwrap().len();
        let stop = AtomicBool::new(false);
        let (stop, address) = (&stop, proxy.address.clone());
        thread::scope(|scope| {
            let agents: Vec<_> = turns
                .iter()
                .enumerate()
                .map(|(agent, turn)| {
                    let (turn, address) = (*turn, address.as_str());
                    scope.spawn(move || converse(address, agent, turn, stop))
                })
                .collect();
            // Half of the kills are counted from the first request on, so that they meet work.
            let started = Instant::now();
            while chance.0 & 1 == 0
                && upstream.came.lock().unwrap().len() <= before
                && started.elapsed() < Duration::from_secs(20)
            {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(u64::try_from(chance.below(400)).unwrap()));
            proxy.child.kill().unwrap();
            proxy.child.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
            for (agent, turn) in agents.into_iter().zip(&mut turns) {
                *turn = agent.join().unwrap();
            }
        });
        let came = std::mem::take(&mut *upstream.came.lock().unwrap());
        originals.add(&mut tally, &came);
        originals.compare(&mut tally, &store);
        tally.count("kills");
    }
    originals.compare_again(&mut tally, &store);
    println!(
        "  {} requests forwarded, {} handles in them recalled and compared, {} turns taken",
        originals.requests,
        originals.handles(),
        turns.iter().sum::<usize>()
    );
    tally.expect(originals.handles() > kills, || {
        format!("only {} handles: too little was hidden", originals.handles())
    });
    tally.finish();
}

#[test]
fn what_was_hidden_survives_kills() {
    check(4);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_kills() {
    check(200);
}
