//! What every engine promises about what was sent: it comes back byte for byte, like what came.

use std::collections::BTreeMap;

use trimtab_core::{
    Memory, Millis, Policy, RewriteForm, SentVerdict, Settings, Tokens, Verdict,
    account::ReturnCounts,
    block_handle, find_model, fit,
    markers::{CacheFields, MarkerField, MarkerTerms, choose_fields},
    parse,
    policy::{Folding, Markers},
};
use trimtab_store::{Append, Appended, RequestId, SessionLabel, Store};

use crate::common::{Said, fit_and_keep, long, request, settings, tool, user, working};

pub(crate) fn what_was_sent_comes_back_byte_for_byte(store: &dyn Store) {
    for (policy, budget, folding) in [
        ("recent", 9_000, Folding::Off),
        ("ladder", 7_000, Folding::Off),
        ("ladder", 12_000, Folding::Ledger),
    ] {
        let settings = settings(policy, budget).with_folding(folding);
        let mut changed = 0;
        for steps in [1, 20, 21, 30] {
            let at = i64::try_from(steps).unwrap() * 1000;
            let kept = fit_and_keep(store, request(&working(steps)), &settings, at, Some(policy)).unwrap();
            let stored = store.request(kept.request).unwrap();
            assert!(stored.sent_bytes().unwrap() == kept.fitted.request, "{policy}, {steps} steps");
            changed += usize::from(stored.bytes != kept.fitted.request);
        }
        assert!(changed > 0, "{policy} hides");
    }
}

/// A request to Anthropic with so many results.
fn anthropic(results: usize) -> Vec<u8> {
    let mut messages = vec![serde_json::json!({"role": "user", "content": "Look."})];
    for number in 0..results {
        let id = format!("toolu_{number}");
        let call =
            serde_json::json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}});
        let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": long(number)});
        messages.push(serde_json::json!({"role": "assistant", "content": [call]}));
        messages.push(serde_json::json!({"role": "user", "content": [result]}));
    }
    serde_json::json!({"model": "claude-opus-5", "max_tokens": 9, "messages": messages})
        .to_string()
        .into_bytes()
}

pub(crate) fn a_cache_marker_that_was_added_is_part_of_what_was_sent(store: &dyn Store) {
    let policy = Policy::shipped_with("recent", &[("keep_last".to_owned(), 3.0), ("batch".to_owned(), 1.0)])
        .expect("a policy");
    let settings = Settings::new(policy).with_markers(Markers::OneMore).with_budget(Tokens(100_000));
    let mut markers = 0;
    for results in 3..9 {
        let at = i64::try_from(results).unwrap() * 1000;
        let kept = fit_and_keep(store, anthropic(results), &settings, at, None).unwrap();
        let stored = store.request(kept.request).unwrap();
        assert!(stored.sent_bytes().unwrap() == kept.fitted.request, "{results} results");
        assert_eq!(stored.marker, kept.fitted.plan.marker());
        markers += usize::from(String::from_utf8(kept.fitted.request).unwrap().contains("cache_control"));
    }
    assert!(markers > 0, "a marker is added");
}

pub(crate) fn what_was_inserted_for_the_cache_is_part_of_what_was_sent(store: &dyn Store) {
    let settings = settings("recent", 100_000);
    let model = find_model("claude-opus-5").unwrap();
    let accepts = CacheFields { marker: Some(MarkerField::CacheControl), key: true };
    for (results, marked) in [(9, true), (10, false)] {
        let fitted = fit(anthropic(results), &Memory::default(), &settings, Millis(0)).unwrap();
        let sent = parse(fitted.request.clone()).unwrap();
        let returns = ReturnCounts { in_time: 9, late: 0 };
        let tokens = Tokens(9000);
        let terms = MarkerTerms { accepts, model: Some(&model), tokens, returns, blocks_after_edit: None };
        let added = choose_fields(&fitted.history, &sent, &terms);
        assert!(added.markers() > 0 && added.insertions().len() > added.markers());
        let known = store.recognize(&fitted.history, SessionLabel::default()).unwrap();
        let append = Append::new(&fitted.history, &fitted.plan, &known, Millis(0));
        let append = if marked { append.with_added(added.insertions()) } else { append };
        let Appended::Stored { session, request } = store.append_request(&append).unwrap() else {
            panic!("nobody else writes")
        };
        let stored = store.request(request).unwrap();
        let expected = if marked { added.write_into(&fitted.request) } else { fitted.request };
        assert!(stored.sent_bytes().unwrap() == expected, "{results} results");
        assert!(stored.bytes == anthropic(results));
        assert_eq!(store.requests(session).unwrap().last().map(|info| info.marked), Some(marked));
    }
}

pub(crate) fn the_history_of_verdicts_tells_what_each_request_hid(store: &dyn Store) {
    let settings = settings("ladder", 7_000);
    let mut kept = Vec::new();
    for steps in [1, 12, 20, 21, 30] {
        let at = i64::try_from(steps).unwrap() * 1000;
        kept.push(fit_and_keep(store, request(&working(steps)), &settings, at, Some("told")).unwrap());
    }
    let told = store.verdict_history(kept[0].session).unwrap();
    let mut plans: BTreeMap<RequestId, BTreeMap<u32, i64>> = BTreeMap::new();
    for row in &told.requests {
        let mut plan = row.base.map(|base| plans[&base].clone()).unwrap_or_default();
        plan.split_off(&row.same_blocks);
        for (block, verdict) in &row.changes {
            match verdict {
                Some(verdict) => plan.insert(*block, *verdict),
                None => plan.remove(block),
            };
        }
        let hidden: Vec<_> =
            plan.iter().map(|(block, verdict)| (*block, told.verdicts[verdict].clone())).collect();
        assert_eq!(hidden, store.request(row.request).unwrap().hidden);
        plans.insert(row.request, plan);
    }
    assert_eq!(told.requests.len(), kept.len());
    assert!(plans.values().any(|plan| plan.len() > 3), "something is hidden");
}

/// A file that was printed with padded line numbers.
fn printed_file(number: usize) -> Said {
    let lines = (1..60).map(|line| format!("{line:>6}\tlet value_{line} = {};\n", line * 7 + number));
    tool(&format!("cat -n src/part{number}.rs"), &lines.collect::<String>())
}

pub(crate) fn what_is_rewritten_stays_in_its_form_in_every_process_and_its_original_is_kept(
    store: &dyn Store,
) {
    let policy =
        Policy::shipped_with("steady", &[("birth_padding".to_owned(), 1.0), ("file_need".to_owned(), 0.0)])
            .expect("a policy");
    let settings = Settings::new(policy).with_budget(Tokens(100_000));
    // A request that a cache takes: of a smaller one nothing is changed.
    let words = "Look at all of it. ".repeat(2000);
    let said = |files: usize| [vec![user(&words)], (0..files).map(printed_file).collect()].concat();
    let first = fit_and_keep(store, request(&said(1)), &settings, 1000, None).unwrap();
    let is_rewritten = |verdict: &SentVerdict| matches!(verdict.verdict(), Verdict::Rewrite { forms, .. } if *forms == [RewriteForm::Padding]);
    let place =
        SentVerdict::of_plan(&first.fitted.plan).iter().position(is_rewritten).expect("a rewritten block");
    let block = &first.fitted.history.blocks()[place];
    let original = store.recall(&block_handle(&first.fitted.history, block)).unwrap();
    assert!(String::from_utf8(original).unwrap().contains("     1\tlet value_1"), "every byte of it");
    // Another process knows the form, and repeats it.
    let known = store.recognize(&parse(request(&said(2))).unwrap(), SessionLabel::with_name(None)).unwrap();
    let hash = first.fitted.plan.chain()[place];
    assert!(known.memory.verdicts().any(|(known, sent)| known == hash && is_rewritten(sent)));
    let second = fit_and_keep(store, request(&said(2)), &settings, 2000, None).unwrap();
    let end_of_messages = first.fitted.request.iter().rposition(|byte| *byte == b']').unwrap();
    assert!(second.fitted.request.starts_with(&first.fitted.request[..end_of_messages]));
    assert_eq!(SentVerdict::of_plan(&second.fitted.plan).iter().filter(|sent| is_rewritten(sent)).count(), 2);
    assert!(store.request(second.request).unwrap().sent_bytes().unwrap() == second.fitted.request);
}
