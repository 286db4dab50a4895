//! Texts as tools give them, made up: logs, sources, listings, hits, JSON, traces, pages, other scripts, endless lines.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    sample::select,
};
use serde_json::{Value, json};

/// Any text: of one kind, or of several after each other, with either line end.
pub(super) fn text() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        lines(LOG, 0..120),
        lines(SOURCE, 0..200),
        lines(LISTING, 0..150),
        lines(HITS, 0..80),
        lines(TRACE, 0..60),
        lines(PAGE, 0..60),
        lines(SCRIPTS, 0..60),
        (select(LOG), 1..60_usize).prop_map(|(line, times)| format!("{line}\n").repeat(times)),
        (select(SCRIPTS), 1..400_usize).prop_map(|(line, times)| line.repeat(times)),
        (any::<u64>(), 1..3000_usize).prop_map(|(seed, length)| format!("{seed:x}").repeat(length / 8)),
        Just(String::new()),
        "\\PC{0,80}",
    ];
    let many = vec(one, 1..4).prop_map(|texts| texts.join("\n"));
    prop_oneof![
        5 => (many, any::<bool>(), any::<bool>()).prop_map(|(text, crlf, end)| {
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            if end { text + "\n" } else { text }
        }),
        2 => value().prop_map(|value| value.to_string()),
        1 => value().prop_map(|value| serde_json::to_string_pretty(&value).expect("JSON")),
    ]
}

fn lines(pool: &'static [&'static str], length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec((select(pool), 0..1000_u32), length).prop_map(|lines| {
        lines.iter().map(|(line, number)| line.replace('#', &number.to_string()) + "\n").collect()
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z é日\"\\\\]{0,20}".prop_map(Value::from),
        lines(LOG, 0..60).prop_map(Value::from),
        Just(json!({"level": "error", "message": "it broke"})),
    ];
    leaf.prop_recursive(3, 200, 40, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..40).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 0..20)
                .prop_map(|members| Value::from(members.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

const LOG: &[&str] = &[
    "test module::name_# ... ok",
    "test module::name_# ... ok",
    "test module::name_# ... FAILED",
    "tests/test_a.py::test_# PASSED    [ 10%]",
    "tests/test_a.py::test_# FAILED    [ 10%]",
    "   Compiling crate-# v1.0.#",
    "error[E0308]: mismatched types in item #",
    "  --> src/main.rs:#:5",
    "warning: unused variable `x#`",
    "error: could not compile `x` (lib) due to # previous errors",
    "45 passed, 0 failed",
    "test result: FAILED. # passed; 1 failed; 0 ignored",
    "waiting",
    "waiting",
    "",
    "2026-01-02 10:00:# INFO worker: item done",
    "2026-01-02 10:00:# ERROR worker: item lost",
    "\u{1b}[32m✓\u{1b}[0m renders #",
    "\u{1b}[31m✗\u{1b}[0m breaks #",
    "10%\r20%\r30%\r100% done #",
    "thread 'main' panicked at src/a.rs:#:1:",
    "E       assert # == 2",
];

const SOURCE: &[&str] = &[
    "use std::fmt;",
    "",
    "pub fn name_#(x: u32) -> u32 {",
    "    let y = x + #;",
    "    if y > # { return Err(\"error: too many\"); }",
    "}",
    "class Thing#(Base):",
    "    def method_#(self):",
    "        raise ValueError(\"error #\")",
    "    #→let x = 1;",
    "/// Says what error handling does.",
    "    }",
];

const LISTING: &[&str] = &[
    "src/a#.rs",
    "src/deep/er/b#.py",
    "docs/",
    "README.md",
    "-rw-r--r-- 1 user group # Jan  1 10:00 file#.txt",
    "drwxr-xr-x 2 user group 4096 Jan  1 10:00 dir#",
    "├── file#.rs",
    "│   └── inner#.rs",
    "ls: cannot access 'x#': No such file or directory",
    "total #",
    " M src/a#.rs",
    "?? new#.rs",
];

const HITS: &[&str] = &[
    "src/a.rs:#:    let found = 1;",
    "src/b.py:#:found",
    "src/a.rs-#-    context",
    "--",
    "src/c.rs",
    "#:found under a heading",
    "C:\\dir\\file.txt:#:found",
    "Found # files",
];

const TRACE: &[&str] = &[
    "Traceback (most recent call last):",
    "  File \"/app/main.py\", line #, in run",
    "    self.go()",
    "  File \"/usr/lib/python3/site-packages/x.py\", line #, in go",
    "ValueError: item # is wrong",
    "    at run (/app/index.js:#:5)",
    "    at node_modules/x/index.js:#:1",
    "TypeError: x is not a function",
    "Exception in thread \"main\" java.lang.IllegalStateException: #",
    "\tat com.example.Main.run(Main.java:#)",
];

const PAGE: &[&str] = &[
    "# Heading #",
    "Some words about item # that go on for a while.",
    "",
    "<h2>Part #</h2>",
    "Title",
    "=====",
    "- point #",
];

const SCRIPTS: &[&str] = &[
    "日本語のテキスト#です。",
    "한국어 텍스트 # 줄",
    "Ünïcödé #",
    "🚀 gestartet #",
    "مرحبا #",
    "エラー: #",
    "x",
];
