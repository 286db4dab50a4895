//! The shipped requests, fitted as hard as every policy can: what current clients send beside conversations of text and calls
//! is unchanged, and no rule is broken that the request kept.

use trimtab_core::{Memory, Policy, Settings, Tokens, parse, policy::policies};

use super::{fitted, shown, value};
use crate::checker;

#[test]
fn valid_every_shipped_request_that_is_fitted_breaks_no_rule() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/requests");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut seen = 0;
    for path in files.filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).expect("a file");
        let history = parse(bytes.clone()).expect("a request");
        for (name, _) in policies() {
            let policy = Policy::find_shipped(name).expect("a shipped policy");
            let settings =
                Settings::new(policy).with_budget(Tokens(50)).with_format(history.format()).with_cold_cache();
            let fitted = fitted(&bytes, &Memory::default(), &settings, 0);
            let (before, after) = (value(&bytes), value(&fitted.request));
            let mut faults = checker::new_faults(history.format().name(), &before, &after);
            faults.extend(checker::turn_faults(history.format().name(), &before, &after));
            assert!(faults.is_empty(), "{}, {name}: {faults:?}\n{}", path.display(), shown(&fitted));
            seen += 1;
        }
    }
    assert!(seen > 500, "only {seen} fits");
}
