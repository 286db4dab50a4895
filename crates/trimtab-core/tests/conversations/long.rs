//! Conversations as agents have them: several turns, long results of known tools, legal in every format but for the
//! faults that are put in on purpose. For the laws of fitting, which need something to hide.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};

use super::{Call, CallResult, Conversation, Turn, text};

/// A conversation that fits nowhere, and whether its latest turn is still under way.
pub(crate) fn long_conversation() -> impl Strategy<Value = Conversation> {
    let steps = prop::collection::vec(prop_oneof![9 => step().boxed(), 1 => edits().boxed()], 0..5);
    let answer = (prop::option::of(words()), prop::bool::weighted(0.15));
    let turns = prop::collection::vec((words(), steps, answer), 1..4);
    let fault = prop_oneof![12 => Just(Fault::None), 1 => Just(Fault::Dangling), 1 => text().prop_map(Fault::Strange), 2 => words().prop_map(Fault::System)];
    (prop::option::of(words()), turns, any::<bool>(), fault).prop_map(|(system, turns, running, fault)| {
        let mut all = Vec::new();
        let count = turns.len();
        for (index, (said, steps, (answer, is_interrupted))) in turns.into_iter().enumerate() {
            let last = index + 1 == count;
            all.push(Turn::Human { text: said, picture: index % 3 == 1 });
            let idle = steps.is_empty();
            all.extend(steps);
            // A turn ends in an answer; the latest only waits for one, and what is interrupted ends with results.
            if (!last && (idle || !is_interrupted)) || (last && !running && !idle) {
                let text = Some(answer.unwrap_or_else(|| "Done.".to_owned()));
                all.push(Turn::Answer { reasoning: None, text, calls: Vec::new() });
            }
            if last && !running && !idle {
                all.push(Turn::Human { text: "And now the rest, please.".to_owned(), picture: false });
            }
        }
        put_in(&mut all, fault);
        Conversation { system, tools: vec!["Read".to_owned(), "Bash".to_owned()], turns: all }
    })
}

/// What comes in broken, or where few expect it.
#[derive(Debug, Clone)]
enum Fault {
    None,
    /// The last call of an exchange in the middle has no result.
    Dangling,
    /// A block that nobody knows stands in the middle.
    Strange(String),
    /// The system speaks in the middle.
    System(String),
}

fn put_in(turns: &mut Vec<Turn>, fault: Fault) {
    let middle = turns.len() / 2;
    match fault {
        Fault::None => {}
        Fault::Dangling => {
            let with_calls = turns.iter_mut().skip(middle).find_map(|turn| match turn {
                Turn::Answer { calls, .. } => calls.last_mut(),
                Turn::Human { .. } | Turn::System(_) | Turn::Strange(_) => None,
            });
            if let Some(call) = with_calls {
                call.result = CallResult::Missing;
            }
        }
        Fault::Strange(text) => turns.insert(middle, Turn::Strange(text)),
        Fault::System(text) => turns.insert(middle, Turn::System(text)),
    }
}

/// An exchange: perhaps thought about, perhaps several calls at once.
fn step() -> impl Strategy<Value = Turn> {
    let calls = prop::collection::vec(known_call(), 1..4);
    (prop::option::of(words()), prop::option::of(words()), calls)
        .prop_map(|(reasoning, text, calls)| Turn::Answer { reasoning, text, calls })
}

/// Many edits of one file at once, some after a change of folder, with what tools say about them: receipts and snippets of any
/// length, so that some are just long enough to tell the series.
fn edits() -> impl Strategy<Value = Turn> {
    let edit = |(number, length, in_folder): (u32, usize, bool)| {
        let file = "src/main.rs";
        let receipt = format!("The file {file} has been updated.{}", " It is all right.".repeat(length));
        let change = [("old_string", format!("old {number}")), ("new_string", format!("new {number}\nline"))];
        if in_folder {
            let command = format!("cd src && sed -i 's/old {number}/new {number}/' main.rs");
            return Call {
                name: "Bash".to_owned(),
                key: "command".to_owned(),
                argument: command,
                more: Vec::new(),
                result: CallResult::Text(receipt),
            };
        }
        Call {
            name: "Edit".to_owned(),
            key: "file_path".to_owned(),
            argument: file.to_owned(),
            more: change.to_vec(),
            result: CallResult::Text(receipt),
        }
    };
    let call = (any::<u32>(), 0usize..20, prop::bool::weighted(0.1)).prop_map(edit);
    prop::collection::vec(call, 4..9).prop_map(|calls| Turn::Answer { reasoning: None, text: None, calls })
}

/// Calls of tools that are known, about few files, so that they are about the same ones.
fn known_call() -> impl Strategy<Value = Call> {
    let call = |name: &str, key: &str, argument: String, result: CallResult| Call {
        name: name.to_owned(),
        key: key.to_owned(),
        argument,
        more: Vec::new(),
        result,
    };
    let file =
        || prop_oneof![Just("src/main.rs"), Just("src/lib.rs"), Just("README.md")].prop_map(str::to_owned);
    let read = (file(), long_text())
        .prop_map(move |(file, text)| call("Read", "file_path", file, CallResult::Text(text)));
    let edit = (file(), long_text(), long_text()).prop_map(move |(file, old, new)| {
        let text = format!("The file {file} has been updated.");
        let more = vec![("old_string", old), ("new_string", new), ("intent", "Make it better.".to_owned())];
        Call { more, ..call("Edit", "file_path", file, CallResult::Text(text)) }
    });
    let write = (file(), long_text(), result()).prop_map(move |(file, text, result)| Call {
        more: vec![("content", text)],
        ..call("Write", "file_path", file, result)
    });
    let patch = (file(), long_text()).prop_map(move |(file, text)| {
        let patch =
            format!("*** Begin Patch\n*** Add File: {file}\n+{}*** End Patch", text.replace('\n', "\n+"));
        call("apply_patch", "input", patch, CallResult::Text("Success.".to_owned()))
    });
    let command = prop_oneof![Just("cargo test"), Just("ls -la"), Just("git diff"), Just("rg -n main")];
    let run = (command, result())
        .prop_map(move |(command, result)| call("Bash", "command", command.to_owned(), result));
    let other = ("[a-z_]{1,12}", text(), result())
        .prop_map(move |(name, argument, result)| call(&name, "value", argument, result));
    prop_oneof![6 => read, 2 => edit, 1 => write, 1 => patch, 6 => run, 2 => other]
}

fn result() -> impl Strategy<Value = CallResult> {
    prop_oneof![
        6 => long_text().prop_map(CallResult::Text),
        1 => long_text().prop_map(CallResult::Failed),
        1 => Just(CallResult::Empty),
        1 => long_text().prop_map(CallResult::Picture),
        1 => long_text().prop_map(CallResult::Structured),
        1 => placeholder().prop_map(|text| CallResult::Text(text.to_owned())),
    ]
}

/// What other tools, and this one, leave in place of content.
fn placeholder() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("[Old tool result content cleared]"),
        Just("[Tool output pruned - 12,345 chars]"),
        Just("first\nsecond\n[run_shell `make`, step 3, 900 lines; too old; trimtab recall 0123456789ab]"),
        Just("[Read a.rs again; 40 lines; trimtab recall 0123456789ab]"),
    ]
}

/// Contents of the kinds that tools print, up to some thousand tokens.
fn long_text() -> impl Strategy<Value = String> {
    let lines = || 1usize..90;
    let repeat = |line: &'static str| move |count: usize| numbered(line, count);
    prop_oneof![
        2 => text(),
        2 => lines().prop_map(code),
        1 => lines().prop_map(repeat("test module::case_# ... ok")),
        1 => lines().prop_map(|count| numbered("test case_# ... ok", count) + "error: it broke\nFAILED (failures=1)\n"),
        1 => lines().prop_map(repeat("src/file_#.rs:12: fn main() {")),
        1 => lines().prop_map(repeat("drwxr-xr-x 2 dev dev 4096 May  1 10:00 folder_#")),
        1 => lines().prop_map(repeat("+added line #\n-removed line #")),
        1 => (1usize..80).prop_map(|rows| {
            let rows: Vec<_> = (0..rows).map(|row| serde_json::json!({"id": row, "name": format!("row {row}")})).collect();
            serde_json::json!(rows).to_string()
        }),
        1 => ("[a-z ]{1,20}", 1usize..300).prop_map(|(word, times)| word.repeat(times)),
        1 => ("[一-龥]{1,12}", 1usize..200).prop_map(|(word, times)| word.repeat(times)),
        1 => lines().prop_map(|count| "\n".repeat(count)),
    ]
}

fn numbered(line: &str, count: usize) -> String {
    (0..count).map(|number| line.replace('#', &number.to_string()) + "\n").collect()
}

fn code(count: usize) -> String {
    (0..count)
        .map(|number| match number % 6 {
            0 => format!("pub fn function_{number}(value: usize) -> usize {{\n"),
            5 => "}\n\n".to_owned(),
            _ => format!("    let value_{number} = value + {number};\n"),
        })
        .collect()
}

/// What people and models say, never blank.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zA-Z][ -~]{0,60}", 1 => "[一-龥ぁ-ん]{1,12}", 1 => "[a-z]{1,8}".prop_map(|word| format!("{word} ").repeat(60))]
}
