//! A disk that is full, by a limit for files and on a small file system: the proxy forwards, hides nothing that it cannot keep,
//! says so, and goes on when there is room again.

use std::{path::Path, process::Command};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::{
    TIGHT, good,
    originals::{Originals, request},
    running::Running,
    tally::Tally,
};

/// A small file system that is gone when this is.
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// Mounts a file system in memory over a folder; nothing where that is not allowed.
    pub(crate) fn over(folder: &'a Path, options: &str) -> Option<Mounted<'a>> {
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(folder).output().ok()?;
        done.status.success().then_some(Mounted(folder))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Lazily: a proxy may still have the file open.
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

/// Leads conversations while the disk fills and after there is room again.
fn check(
    part: &'static str,
    store: &Path,
    turns: usize,
    fill: impl FnOnce(&Running),
    make_room: impl FnOnce(&Running),
) {
    let upstream = good();
    let mut tally = Tally::new(part);
    let mut originals = Originals::default();
    let flags = [&TIGHT[..], &["--store", store.to_str().unwrap(), "--log", "quiet"]].concat();
    let mut proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let mut troubled = 0;
    let turn = |tally: &mut Tally, proxy: &Running, conversation: usize, calls: usize| -> bool {
        let body = request(conversation, calls);
        let answer = proxy.post("/v1/chat/completions", &body);
        let is_troubled = answer.header("x-trimtab-store") == Some("unavailable");
        tally.count(if is_troubled { "without a store" } else { "kept" });
        tally.expect(answer.head[0] == "HTTP/1.1 200 OK", || format!("{:?}", answer.head));
        is_troubled
    };
    for calls in 10..20 {
        turn(&mut tally, &proxy, 0, calls);
    }
    fill(&proxy);
    for number in 0..turns {
        troubled += usize::from(turn(&mut tally, &proxy, 1 + number / 20, 10 + number % 20));
    }
    tally.expect(troubled > 0, || "the disk was never full".to_owned());
    tally.expect(proxy.words().contains("the store cannot be written to"), || proxy.words());
    make_room(&proxy);
    let mut is_troubled = true;
    for calls in 20..30 {
        is_troubled = turn(&mut tally, &proxy, 0, calls);
    }
    tally.expect(!is_troubled, || format!("the store is not used again: {}", proxy.words()));
    tally.expect_memory(&proxy);
    proxy.terminate();
    tally.expect(proxy.child.wait().unwrap().success(), || "it does not end well".to_owned());
    originals.add(&mut tally, &upstream.came());
    originals.compare(&mut tally, store);
    println!("  {} handles recalled and compared", originals.handles());
    tally.expect(originals.handles() > 0, || "nothing was hidden".to_owned());
    tally.expect(proxy.words().contains("not kept in the store"), || {
        format!("the summary is silent: {}", proxy.words())
    });
    tally.finish();
}

/// Lets a process write files of at most so many bytes.
fn limit_files(proxy: &Running, most: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(proxy.child.id()).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: most, maximum: None }).expect("a limit");
}

fn check_limit(turns: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    check(
        "files that may not grow",
        &store,
        turns,
        |proxy| limit_files(proxy, Some(200_000)),
        |proxy| limit_files(proxy, None),
    );
}

#[test]
fn a_file_that_may_not_grow_stops_hiding_and_nothing_else() {
    check_limit(40);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_limit() {
    check_limit(600);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::over(folder.path(), "size=4m") else {
        println!(
            "full disk: 0 inputs: mounting is not allowed here, files that may not grow are tried instead"
        );
        return check_limit(100);
    };
    let store = folder.path().join("kept.db");
    let filler = folder.path().join("filler");
    let fill = |_: &Running| {
        let mut file = std::fs::File::create(&filler).unwrap();
        let written = std::iter::from_fn(|| std::io::Write::write(&mut file, &[0; 4096]).ok()).count();
        assert!(written > 0, "the disk was full before");
    };
    check("full disk", &store, 400, fill, |_| std::fs::remove_file(&filler).unwrap());
}
