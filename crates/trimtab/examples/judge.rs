//! The checker of requests as a program: one JSON object with `format` and `request` per line in, a list of faults per line
//! out. For scripted providers in other languages: they refuse what a real one would.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::indexing_slicing, reason = "a tool for tests")]

#[path = "../../trimtab-core/tests/checker/mod.rs"]
#[allow(dead_code, reason = "the laws use all of it, this only a part")]
mod checker;

use serde_json::Value;

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let said: Value = serde_json::from_str(&line).expect("an object per line");
        let faults = checker::faults(said["format"].as_str().unwrap_or_default(), &said["request"]);
        println!("{}", Value::from(faults));
    }
}
