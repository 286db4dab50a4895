//! The store's file under a running proxy: deleted, replaced by something else, by another store, made read-only, overwritten,
//! cut off. Every request is forwarded; every handle given afterwards brings its original back, or nothing is hidden and the log says why.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{
    TIGHT, common,
    disk::Mounted,
    good,
    originals::{Originals, request},
    running::Running,
    tally::Tally,
};

/// What happens to the file.
type Harm = fn(&Path);

/// What must hold afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// What is hidden after the harm comes back from the file that is there then.
    Recovers,
    /// The file stays bad: nothing new is hidden without being kept.
    StaysBad,
    /// The engine does not read again what it wrote to its log: who asks for an original gets it or an error.
    NoticedByRecall,
}

use Expected::{NoticedByRecall, Recovers, StaysBad};

fn beside(store: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", store.display()))
}

fn delete(store: &Path) {
    ["", "-wal", "-shm"].iter().for_each(|end| drop(fs::remove_file(beside(store, end))));
}

/// Writes rubbish over a part of a file.
fn overwrite(file: &Path, from: u64, length: usize) {
    let file = OpenOptions::new().write(true).open(file).expect("the store's file");
    file.write_all_at(&vec![0xa5; length], from).unwrap();
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

fn cut(file: &Path, to: u64) {
    OpenOptions::new().write(true).open(file).expect("the store's file").set_len(to).unwrap();
}

fn harms() -> Vec<(&'static str, Harm, Expected)> {
    vec![
        ("deleted", delete, Recovers),
        ("deleted without its log", |store| fs::remove_file(store).unwrap(), Recovers),
        ("its folder deleted", |store| fs::remove_dir_all(store.parent().unwrap()).unwrap(), Recovers),
        ("moved away", |store| fs::rename(store, beside(store, ".old")).unwrap(), Recovers),
        (
            "replaced by a text",
            |store| {
                delete(store);
                fs::write(store, "something else").unwrap();
            },
            StaysBad,
        ),
        (
            "replaced by a folder",
            |store| {
                delete(store);
                fs::create_dir(store).unwrap();
            },
            StaysBad,
        ),
        (
            "replaced by nothing",
            |store| {
                delete(store);
                fs::write(store, "").unwrap();
            },
            Recovers,
        ),
        (
            "replaced by another store",
            |store| {
                delete(store);
                let made = common::trimtab(&[
                    "fit",
                    "fixtures/recordings/claude-code.jsonl",
                    "--policy",
                    "recent",
                    "--budget",
                    "6000",
                    "--store",
                    store.to_str().unwrap(),
                ]);
                assert_eq!(made.code, Some(0), "{}", made.words);
            },
            Recovers,
        ),
        ("its log cut off", |store| cut(&beside(store, "-wal"), 32), StaysBad),
        ("its log overwritten", |store| overwrite(&beside(store, "-wal"), 0, 100_000), NoticedByRecall),
        ("its first page overwritten", |store| overwrite(store, 0, 4096), StaysBad),
        (
            "overwritten from its second page on",
            |store| {
                let all = length(store);
                overwrite(store, 4096, usize::try_from(all).unwrap());
            },
            StaysBad,
        ),
        ("cut in half", |store| cut(store, length(store) / 2), StaysBad),
        ("emptied", |store| cut(store, 0), StaysBad),
    ]
}

/// Leads a conversation before and after the harm.
fn check_harm(tally: &mut Tally, (name, harm, expected): (&'static str, Harm, Expected), seed: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept/kept.db");
    fs::create_dir(store.parent().unwrap()).unwrap();
    let upstream = good();
    let flags = [&TIGHT[..], &["--store", store.to_str().unwrap(), "--log", "quiet"]].concat();
    let mut proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let mut unavailable = 0;
    let mut turn = |tally: &mut Tally, conversation: usize, calls: usize| {
        let answer = proxy.post("/v1/chat/completions", &request(conversation, calls));
        tally.expect(answer.head[0] == "HTTP/1.1 200 OK", || format!("{name}: {:?}", answer.head));
        tally.count(answer.header("x-trimtab").unwrap_or("refused"));
        unavailable += usize::from(answer.header("x-trimtab-store") == Some("unavailable"));
    };
    for calls in 12..20 + seed % 7 {
        turn(tally, seed, calls);
    }
    harm(&store);
    let before = upstream.came().len();
    for calls in 20 + seed % 7..32 {
        turn(tally, seed, calls);
        turn(tally, seed + 1, calls);
    }
    let after = upstream.came().split_off(before);
    proxy.terminate();
    let ended = proxy.child.wait().unwrap();
    tally.expect(ended.success(), || format!("{name}: it ends with {ended}"));
    let said = proxy.words();
    let mut originals = Originals::default();
    let mut lost = Tally::new("lost");
    originals.add(tally, &after);
    originals.compare(&mut lost, &store);
    match expected {
        Recovers => {
            tally.add(lost);
            tally.expect(originals.handles() > 0, || format!("{name}: nothing is hidden afterwards"));
            tally.expect(said.contains("deleted or replaced"), || format!("{name}: nothing is said: {said}"));
        }
        NoticedByRecall => {
            let wrong = lost.faults().iter().find(|fault| fault.contains("another text"));
            tally.expect(wrong.is_none(), || format!("{name}: {wrong:?}"));
        }
        // The file's earlier contents may be gone with it; whoever runs the proxy must then know.
        StaysBad => tally.expect(lost.is_good() || unavailable > 0 && said.contains("store"), || {
            format!(
                "{name}: originals are lost and nothing is said ({unavailable} of the answers say so): {said}"
            )
        }),
    }
}

/// A folder that nothing can be written to any more.
fn check_read_only(tally: &mut Tally) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let upstream = good();
    let flags = [&TIGHT[..], &["--store", store.to_str().unwrap(), "--log", "quiet"]].concat();
    let mut proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let turn = |tally: &mut Tally, calls: usize| {
        let answer = proxy.post("/v1/chat/completions", &request(7, calls));
        tally.expect(answer.head[0] == "HTTP/1.1 200 OK", || format!("read-only: {:?}", answer.head));
        tally.count(answer.header("x-trimtab").unwrap_or("refused"));
        answer.header("x-trimtab-store").map(str::to_owned)
    };
    (12..20).for_each(|calls| drop(turn(tally, calls)));
    let Some(mounted) = Mounted::over(folder.path(), "ro,size=4k") else {
        println!("  mounting is not allowed here: a read-only folder is not tried");
        return;
    };
    let said: Vec<Option<String>> = (20..26).map(|calls| turn(tally, calls)).collect();
    tally.expect(said.iter().flatten().any(|said| said == "unavailable"), || {
        format!("read-only: nothing is said: {said:?}")
    });
    drop(mounted);
    let said = (26..32).map(|calls| turn(tally, calls)).last().flatten();
    tally.expect(said.is_none(), || format!("read-only: the store is not used again: {said:?}"));
    proxy.terminate();
    proxy.child.wait().unwrap();
    let mut originals = Originals::default();
    originals.add(tally, &upstream.came());
    originals.compare(tally, &store);
}

#[test]
fn whatever_becomes_of_the_file_requests_are_forwarded() {
    let mut tally = Tally::new("stores");
    for harm in harms().into_iter().step_by(3) {
        check_harm(&mut tally, harm, 0);
    }
    tally.finish();
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_stores() {
    /// How often the file is harmed in each way, each time after another number of turns.
    const ROUNDS: usize = 7;
    let mut tally = Tally::new("stores");
    for round in 0..ROUNDS {
        for harm in harms() {
            check_harm(&mut tally, harm, round * 100);
        }
    }
    check_read_only(&mut tally);
    tally.finish();
}
