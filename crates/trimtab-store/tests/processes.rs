//! Real processes on real file systems: two that append to one file, a disk that is full, one that may not be written to. This
//! file is run again as the process; the disks are made in a separate name space and vanish with it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use common::{Said, fit_and_keep, keep, long, request, settings, tool, user};
use trimtab_core::block_handle;
use trimtab_store::{ForgetSelection, RequestId, RunMode, Sqlite, Store, StoreError};

/// What the process is to do, and with which file.
const ROLE: &str = "TRIMTAB_CHILD_ROLE";
const FILE: &str = "TRIMTAB_CHILD_FILE";

/// How many requests each of several processes appends.
const APPENDS: usize = 25;

/// Does what the parent asks for; does nothing where there is no parent.
#[test]
fn child() {
    let (Ok(role), Ok(file)) = (env::var(ROLE), env::var(FILE)) else { return };
    let path = Path::new(&file);
    match role.as_str() {
        "read only" => read_only(path),
        "full" => fill(path),
        "forget" => forget_when_full(path),
        number => append(path, number.parse().unwrap()),
    }
}

fn as_child(command: &mut Command, role: &str, path: &Path) -> std::process::Child {
    command
        .env(ROLE, role)
        .env(FILE, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process")
}

fn this_test() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]);
    command
}

/// Runs this test as a child after shell commands that may change what it sees of the disk; `$1` is the folder.
fn after(preparing: &str, folder: &Path) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{preparing} && exec \"$0\" child --exact --nocapture");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(env::current_exe().unwrap())
        .arg(folder);
    command
}

/// Tells whether disks can be made here; says so where they cannot.
fn can_mount() -> bool {
    let try_it = "mount -t tmpfs tmpfs /mnt";
    let done = Command::new("unshare").args(["--map-root-user", "--mount", "sh", "-c", try_it]).output();
    let can = done.is_ok_and(|done| done.status.success());
    if !can {
        println!("NOT TESTED: this machine lets nobody mount a disk in a name space of their own");
    }
    can
}

fn succeeds(child: std::process::Child) -> String {
    let done = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words}");
    assert!(words.contains("done as asked"), "the child did its work: {words}");
    words
}

fn conversation(process: usize, steps: usize) -> Vec<Said> {
    let mut said = vec![user(&format!("task of process {process}"))];
    said.extend((0..steps).map(|step| tool(&format!("make {step}"), &long(process * 1000 + step))));
    said
}

fn append(path: &Path, process: usize) {
    let store = Sqlite::open(path).unwrap();
    for steps in 1..=APPENDS {
        let bytes = request(&conversation(process, steps));
        fit_and_keep(&store, bytes, &settings("recent", 4000), 1, None)
            .expect("no other process is in the way");
    }
    println!("done as asked");
}

#[test]
fn processes_that_append_to_one_file_lose_nothing() {
    const PROCESSES: usize = 3;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trimtab.db");
    let running: Vec<_> =
        (0..PROCESSES).map(|number| as_child(&mut this_test(), &number.to_string(), &path)).collect();
    running.into_iter().for_each(|child| drop(succeeds(child)));
    let store = Sqlite::open(&path).unwrap();
    let sessions = store.sessions().unwrap();
    assert_eq!(sessions.len(), PROCESSES);
    let mut expected: Vec<Vec<u8>> = (0..PROCESSES)
        .flat_map(|process| (1..=APPENDS).map(move |steps| request(&conversation(process, steps))))
        .collect();
    let mut found: Vec<Vec<u8>> = sessions
        .iter()
        .flat_map(|session| store.requests(session.id).unwrap())
        .map(|info| store.request(info.id).unwrap().bytes)
        .collect();
    expected.sort();
    found.sort();
    assert!(found == expected, "every request of every process, as it came");
    store.check_contents().unwrap();
}

/// A text that does not get shorter by compressing it.
fn noise(seed: usize) -> String {
    let mut state = u64::try_from(seed).unwrap() * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:x} ")
    };
    (0..1500).map(|_| next()).collect()
}

fn fill(path: &Path) {
    let store = Sqlite::open(path).unwrap();
    let mut kept: Vec<(RequestId, Vec<u8>, String)> = Vec::new();
    let none = settings("none", 10_000_000);
    let error = (0..400).find_map(|number| {
        let bytes = request(&[user(&format!("task {number}")), tool("make", &noise(number))]);
        match fit_and_keep(&store, bytes.clone(), &none, 1, None) {
            Ok(done) => {
                let history = &done.fitted.history;
                let handle = block_handle(history, history.blocks().last().unwrap());
                kept.push((done.request, bytes, handle));
                None
            }
            Err(error) => Some(error),
        }
    });
    let error = error.expect("the disk has an end");
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert!(error.to_string().contains("trimtab forget"), "{error}");
    assert!(kept.len() > 5, "{} were kept before", kept.len());
    // The same store and one opened again give back everything that was reported as kept.
    for store in [store, Sqlite::open_to_read(path).unwrap()] {
        for (id, bytes, handle) in &kept {
            assert!(store.request(*id).unwrap().bytes == *bytes);
            assert!(store.recall(handle).unwrap().len() > 10_000);
        }
    }
    println!("done as asked: full after {} requests", kept.len());
}

/// Forgets half of what is kept after something else took all space that the disk had left.
fn forget_when_full(path: &Path) {
    let store = Sqlite::open(path).unwrap();
    let kept: Vec<_> = (0..60)
        .map(|number| {
            let said = [user(&format!("task {number}")), tool("make", &noise(number))];
            (keep(&store, &said, 1), request(&said))
        })
        .collect();
    drop(store);
    let mut other = fs::File::create(path.with_file_name("other")).unwrap();
    while other.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    let half = ForgetSelection::Sessions(kept[..30].iter().map(|(kept, _)| kept.session).collect());
    let told = Sqlite::open_to_read(path).unwrap().forget(&half, RunMode::DryRun).unwrap();
    let done = Sqlite::forget_alone(path, &half, RunMode::Do).expect("forgetting needs no space");
    assert_eq!((told.sessions.len(), done.sessions.len()), (30, 30));
    assert!(done.after < done.before * 2 / 3, "{} of {}", done.after, done.before);
    let store = Sqlite::open(path).unwrap();
    for (kept, bytes) in &kept[30..] {
        assert!(store.request(kept.request).unwrap().bytes == *bytes);
    }
    store.check_contents().unwrap();
    keep(&store, &[user("There is room again.")], 2);
    let busy = Sqlite::forget_alone(path, &half, RunMode::Do).unwrap_err();
    assert!(matches!(busy, StoreError::Busy(_)), "{busy:?}");
    println!("done as asked");
}

#[test]
fn forgetting_works_on_a_full_disk() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = after("mount -t tmpfs -o size=6m tmpfs \"$1\"", folder.path());
    succeeds(as_child(&mut command, "forget", &folder.path().join("trimtab.db")));
}

#[test]
fn a_file_that_may_not_grow_is_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // Without the signal, writing beyond the limit fails like any other write.
    let script = "trap '' 25 && ulimit -f 1200 && exec \"$0\" child --exact --nocapture";
    command.args(["-c", script]).arg(env::current_exe().unwrap());
    succeeds(as_child(&mut command, "full", &folder.path().join("trimtab.db")));
}

#[test]
fn a_full_disk_is_told_and_everything_kept_is_read() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = after("mount -t tmpfs -o size=900k tmpfs \"$1\"", folder.path());
    succeeds(as_child(&mut command, "full", &folder.path().join("trimtab.db")));
}

fn read_only(path: &Path) {
    let error = Sqlite::open(path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    let store = Sqlite::open_to_read(path).unwrap();
    let session = store.sessions().unwrap().remove(0);
    let info = store.requests(session.id).unwrap().remove(0);
    assert_eq!(store.request(info.id).unwrap().bytes, request(&conversation(7, 2)));
    let none = settings("none", 100_000);
    let error = fit_and_keep(&store, request(&conversation(7, 3)), &none, 2, None).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    store.check_contents().unwrap();
    assert!(
        Sqlite::open(&path.with_file_name("new.db")).unwrap_err().to_string().contains("cannot be opened")
    );
    println!("done as asked");
}

#[test]
fn a_disk_that_may_not_be_written_to_can_be_read() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A name that means something else in an address.
    let path: PathBuf = folder.path().join("100 %25 #1?.db");
    keep(&Sqlite::open(&path).unwrap(), &conversation(7, 2), 1);
    let before = fs::read(&path).unwrap();
    let remount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    succeeds(as_child(&mut after(remount, folder.path()), "read only", &path));
    assert!(fs::read(&path).unwrap() == before, "nothing was written");
}
