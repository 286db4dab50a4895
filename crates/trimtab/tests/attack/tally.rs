//! What became of the inputs of one part. Counts outcomes, keeps faults, prints one line and fails where there were faults.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{conversations::anthropic, running::Running, upstream::Upstream};

/// How many faults are shown.
const SHOWN: usize = 10;

/// How much memory a proxy may have after an attack, in MB.
const MOST_MEMORY: u64 = 400;

/// What is remembered of a message while its session is one of the latest, in bytes at most: what became of it, by its identity, as
/// sent and as last planned, with memory that the allocator and the store's writer keep for the next request. Measured: 500 without
/// a store and 900 with one, for a million messages of one letter.
const REMEMBERED: usize = 1_000;

/// The counts of one part.
pub(crate) struct Tally {
    part: &'static str,
    started: Instant,
    outcomes: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Tally {
    pub(crate) fn new(part: &'static str) -> Tally {
        Tally { part, started: Instant::now(), outcomes: BTreeMap::new(), faults: Vec::new() }
    }

    /// Counts an input by what became of it.
    pub(crate) fn count(&mut self, outcome: &str) {
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
    }

    /// Notes a fault where something that must hold does not.
    pub(crate) fn expect(&mut self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(words());
        }
    }

    /// Takes over what another counted.
    pub(crate) fn add(&mut self, other: Tally) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.faults.extend(other.faults);
    }

    /// Checks that a proxy still works for everybody else, and how much memory it has.
    pub(crate) fn expect_alive(&mut self, proxy: &Running, upstream: &Upstream) {
        self.expect_served(proxy, upstream);
        self.expect_memory(proxy);
    }

    /// Checks that a proxy still works for everybody else.
    pub(crate) fn expect_served(&mut self, proxy: &Running, upstream: &Upstream) {
        let started = Instant::now();
        // Small enough to fit into every budget here, and about something else: what was hidden of a conversation that begins
        // with the same words would be hidden again.
        let body = bystander();
        let answer = proxy.post("/v1/messages", &body);
        let arrived = upstream.came().into_iter().any(|came| came.body == body);
        self.expect(answer.head[0] == "HTTP/1.1 200 OK" && arrived, || {
            format!("a bystander is not served: {:?}\n{}", answer.head, proxy.words())
        });
        self.expect(started.elapsed() < Duration::from_secs(10), || {
            format!("a bystander waits {:?}", started.elapsed())
        });
        let panics = proxy.figure("trimtab_faults_total{kind=\"panic\"}").abs();
        self.expect(panics < 0.5, || format!("{panics} panics\n{}", proxy.words()));
    }

    /// Checks that a proxy has not kept what it was given.
    pub(crate) fn expect_memory(&mut self, proxy: &Running) {
        self.expect_memory_after(proxy, 0);
    }

    /// Does the same after conversations of so many messages in all.
    pub(crate) fn expect_memory_after(&mut self, proxy: &Running, messages: usize) {
        let memory = resident_megabytes(proxy);
        let most = MOST_MEMORY + u64::try_from((messages * REMEMBERED) >> 20).unwrap();
        self.expect(memory <= most, || format!("{memory} MB resident, {most} MB at most"));
    }

    /// Tells whether there was no fault.
    pub(crate) fn is_good(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns what did not hold.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Prints the counts, and fails where there were faults.
    #[track_caller]
    pub(crate) fn finish(self) {
        let inputs: usize = self.outcomes.values().sum();
        let outcomes: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        println!(
            "{}: {inputs} inputs in {:.1} s: {}; {} faults",
            self.part,
            self.started.elapsed().as_secs_f64(),
            outcomes.join(", "),
            self.faults.len()
        );
        let shown = &self.faults[..self.faults.len().min(SHOWN)];
        assert!(self.faults.is_empty(), "{}: {} faults\n{}", self.part, self.faults.len(), shown.join("\n"));
    }
}

/// A request of a conversation that no attack has a part in.
pub(crate) fn bystander() -> Vec<u8> {
    String::from_utf8(anthropic(1)).unwrap().replacen("Find the value.", "A bystander asks.", 1).into_bytes()
}

/// Returns how much memory a proxy has; nothing where the system does not tell.
pub(crate) fn resident_megabytes(proxy: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Numbers that look like chance and are the same every time.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Returns a number below another.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most.max(1)
    }
}
