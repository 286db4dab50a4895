//! Writes the reference page of digests from the list: what each says of itself, and one example before and after.

use std::{fmt::Write, path::Path, sync::LazyLock};

use super::{DIGESTS, TextContext, relevant, savings, shortened};
use crate::digest::query_terms;
use crate::facts::Outcome;
use crate::rewrite::{RewriteForm, rewrite_as};

/// The words of the task in the example of `relevant`.
static TASK: LazyLock<Vec<String>> = LazyLock::new(|| query_terms("How do I repair gadget_31?"));

/// How much of an example is printed, in lines.
const PRINTED: usize = 14;

#[test]
fn the_page_is_what_the_list_says_of_itself() {
    let mut page = "# Digests\n\nA digest shortens one kind of text. A test writes this page from the list in `crates/trimtab-core/src/digest/mod.rs`;\n`TRIMTAB_BLESS=1 cargo test -p trimtab-core` renews it. Rules name a digest by its heading.\n\nEvery digest keeps whole lines of the original in order (JSON: whole elements) and adds bracketed notes; a line over 500\ncharacters may be cut. Error lines survive in every digest except `clear`: the first 20 and the last 5. A text that would not\nbecome smaller in bytes and in tokens is not changed, and a shortened text is not shortened again.\n".to_owned();
    for digest in DIGESTS {
        let (about, text) = example(digest.name);
        let short = shortened(&text, about, digest).unwrap_or_else(|| panic!("{}: no example", digest.name));
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\nBefore (lines: {}):\n\n```text\n{}```\n\nAfter:\n\n```text\n{}```\n",
            digest.name,
            digest.about,
            text.lines().count(),
            printed(&text),
            printed(&short)
        );
    }
    page.push_str("\n# Forms\n\nA form says all of a result in fewer tokens, before the result is first sent. A policy names it as `do = \"rewrite FORM\"`. The\noriginal comes back by `trimtab recall HANDLE`.\n");
    for form in RewriteForm::ALL {
        let text = form_example(form);
        let rewritten = rewrite_as(&text, form).unwrap_or_else(|| panic!("{form}: no example"));
        let shown = |text: &str| printed(&text.replace('\u{1b}', "ESC"));
        let _ = write!(
            page,
            "\n## {form}\n\nGives {}.\n\nBefore:\n\n```text\n{}```\n\nAfter:\n\n```text\n{}```\n",
            form.about(),
            shown(&text),
            shown(&rewritten)
        );
    }
    check_file("docs/digests.md", &page);
}

fn form_example(form: RewriteForm) -> String {
    match form {
        RewriteForm::Padding => "     9→fn main() {\n    10→    println!(\"Hello\");\n    11→}\n",
        RewriteForm::Ansi => "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m hello v0.1.0\n\u{1b}[1m\u{1b}[32m    Finished\u{1b}[0m `dev` profile\n",
        RewriteForm::Paths => {
            "crates/core/src/lib.rs:12:pub mod count;\ncrates/core/src/lib.rs:15:pub mod digest;\ncrates/core/src/plan.rs:3:use crate::count;\n"
        }
        RewriteForm::Json => "[\n  {\n    \"id\": 1,\n    \"name\": \"one\"\n  },\n  {\n    \"id\": 2,\n    \"name\": \"two\"\n  }\n]\n",
    }
    .to_owned()
}

/// Compares a file of the project, or writes it when `TRIMTAB_BLESS` is set.
pub(crate) fn check_file(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        std::fs::write(&path, expected).expect(file);
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{file} is out of date: run the tests once with TRIMTAB_BLESS=1");
}

/// Prints the beginning and the end of a text.
fn printed(text: &str) -> String {
    let clipped: Vec<String> = text
        .lines()
        .map(|line| {
            if line.chars().count() > 400 {
                line.chars().take(100).chain(" (and so on)".chars()).collect()
            } else {
                line.to_owned()
            }
        })
        .collect();
    if clipped.len() <= PRINTED * 2 {
        return clipped.join("\n") + "\n";
    }
    let end = &clipped[clipped.len() - 3..];
    format!("{}\n(and so on)\n{}\n", clipped[..4].join("\n"), end.join("\n"))
}

fn example(name: &str) -> (TextContext<'static>, String) {
    let none = TextContext::default();
    match name {
        "file" => (TextContext { path: Some("src/agent.py"), ..none }, savings::source(120)),
        "listing" => (TextContext { tool: Some("list_files"), ..none }, savings::files(60)),
        "tree" => (TextContext { tool: Some("tree"), ..none }, "src\n├── main.rs\n├── digest\n│   ├── mod.rs\n│   ├── text.rs\n│   ├── choose.rs\n│   ├── listing.rs\n│   └── tree.rs\n├── render\n│   ├── mod.rs\n│   ├── note.rs\n│   ├── clip.rs\n│   └── recognize.rs\n└── lib.rs\n\n2 directories, 11 files\n".to_owned()),
        "repo-map" => (TextContext { tool: Some("get_repo_map"), ..none }, (0..12).map(|n| format!("src/module_{n}.py:\n│class Thing{n}(Base):\n│    def run(self, first, second):\n")).collect()),
        "structure" => (TextContext { tool: Some("code_structure"), ..none }, (0..40).map(|n| format!("def function_{n}(first, second=None)  # line {}\n", n * 12)).collect()),
        "git-status" => (TextContext { command: Some("git status"), ..none }, "On branch main\nChanges to be committed:\n  (use \"git restore --staged <file>...\" to unstage)\n\tnew file:   src/one.py\n\nChanges not staged for commit:\n  (use \"git add <file>...\" to update what will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n\tmodified:   src/two.py\n\tmodified:   src/three.py\n\nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n\tnotes.md\n".to_owned()),
        "diff" => (TextContext { command: Some("git diff"), ..none }, "diff --git a/src/x.py b/src/x.py\nindex 83db48f..bf269f4 100644\n--- a/src/x.py\n+++ b/src/x.py\n@@ -10,20 +10,20 @@ def run():\n".to_owned() + &"-    value = compute(value)\n+    value = compute(value, state)\n".repeat(20)),
        "git-log" => (TextContext { command: Some("git log --oneline"), ..none }, (0..40).map(|n| format!("{:07x} topic: change number {n} and say why\n", n * 7_654_321 + 99)).collect()),
        "search" => (TextContext { command: Some("rg -n tool_name"), ..none }, savings::hits(40)),
        "shell" => (TextContext { command: Some("./import --all"), outcome: Outcome::Succeeded, ..none }, (0..60).map(|n| format!("{n:03} imported record {:x}\n", n * 7919)).collect()),
        "log" | "log-long" => (TextContext { command: Some("cargo test"), outcome: Outcome::Failed, ..none }, failing_run()),
        "json" => (none, serde_json::to_string_pretty(&(0..30).map(|n| serde_json::json!({"id": n, "name": format!("row {n}")})).collect::<Vec<_>>()).expect("JSON")),
        "relevant" => (TextContext { terms: &TASK, ..none }, relevant::manual()),
        "trace" => (none, "Traceback (most recent call last):\n  File \"/app/main.py\", line 3, in main\n    run()\n".to_owned() + &(0..20).map(|n| format!("  File \"/usr/lib/python3/site-packages/lib/core.py\", line {n}, in call_{n}\n    return inner({n})\n")).collect::<String>() + "  File \"/app/own.py\", line 9, in own\n    raise ValueError(1)\nValueError: one is wrong\n"),
        "page" => (TextContext { tool: Some("web_fetch"), ..none }, (0..12).map(|n| format!("## Part {n}\n\nSome words about part {n} that go on for a while.\nAnd then some more of them, which say the same again.\n\n")).collect()),
        "media" => (TextContext { path: Some("shot.png"), ..none }, "iVBORw0KGgoAAAANSUhEUgAA".repeat(200)),
        "repeats" => (none, "starting the server\n".to_owned() + &"waiting for the server to come up\n".repeat(20) + "it is up\n"),
        "middle-out" => (none, (0..4000).map(|n| format!("line {n} of some output\n")).collect()),
        "head-tail" => (none, (0..600).map(|n| format!("line {n} of some output\n")).collect()),
        _ => (none, (0..80).map(|n| format!("line {n} of some text that nothing is known about\n")).collect()),
    }
}

fn failing_run() -> String {
    let mut text: String = (0..60).map(|n| format!("test module::case_{n} ... ok\n")).collect();
    text += "test module::broken ... FAILED\n\nfailures:\n\n---- module::broken stdout ----\nthread 'module::broken' panicked at src/lib.rs:10:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n\nfailures:\n    module::broken\n\n";
    text + "test result: FAILED. 60 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n"
}
