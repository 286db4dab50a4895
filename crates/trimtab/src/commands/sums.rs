//! The summary that `proxy` and `wrap` say at their end. Takes the figures of a proxy; gives two lines about what was saved, or why
//! nothing was, and one more for each kind of trouble. The provider's errors, late plans and errors of trimtab
//! itself are listed separately.

use trimtab_core::{Tokens, keep_alive::KeepAliveTrial};

use crate::{
    output::{self, group_thousands},
    proxy::{
        Proxy,
        metrics::{LargestRequest, ProxySums},
        store_health::UnkeptReason,
    },
    terminal::escape_name,
};

/// Says what came of it all. `if_silent` says what to do where no request came.
pub(super) fn say_sums(proxy: &Proxy, if_silent: &str) {
    for line in describe_sums(&proxy.metrics.sums(), if_silent)
        .into_iter()
        .chain(unkept_words(&proxy.unkept_counts()))
    {
        output::print_note(escape_name(&line));
    }
}

/// Says what was not kept, and why.
fn unkept_words(unkept: &[(UnkeptReason, u64)]) -> Option<String> {
    let reasons: Vec<String> =
        unkept.iter().map(|(why, count)| format!("{} {}", group_thousands(*count), why.describe())).collect();
    (!reasons.is_empty()).then(|| format!("not kept in the store: {}", reasons.join("; ")))
}

fn describe_sums(sums: &ProxySums, if_silent: &str) -> Vec<String> {
    let mut lines = if sums.conversations + sums.others < 0.5 {
        vec!["nothing was saved: no request reached trimtab".to_owned(), if_silent.to_owned()]
    } else if sums.conversations < 0.5 {
        let came = count_with_word(sums.others, "request", "requests");
        vec![
            format!("nothing was saved: {came} arrived, but none asked a model for an answer"),
            if_silent.to_owned(),
        ]
    } else {
        [Some(saved_words(sums)), usage_words(sums)].into_iter().flatten().collect()
    };
    lines.extend(ping_words(sums));
    lines.extend(upstream_words(sums));
    if sums.late_plans > 0.5 {
        let plans = count_with_word(sums.late_plans, "plan was", "plans were");
        lines.push(format!(
            "late plans: {plans} not ready in time; these requests were sent with an earlier plan, unchanged, or late"
        ));
    }
    if !sums.faults.is_empty() {
        let total = count_with_word(sum_of(&sums.faults), "error", "errors");
        lines.push(format!("errors in trimtab: {total} ({})", by_kind(&sums.faults)));
    }
    lines
}

/// Says what was saved, or why nothing was.
fn saved_words(sums: &ProxySums) -> String {
    let requests = count_with_word(sums.conversations, "request", "requests");
    let is_smaller = sums.raw - sums.sent > 0.5;
    let mut whys: Vec<String> = sums.passed.iter().map(passed_words).collect();
    if is_smaller {
        let share = percent_of(sums.raw - sums.sent, sums.raw);
        let saved = format!(
            "{requests}: {} of {} tokens sent ({share:.1} % less), with {:.1} ms of work for each request",
            format_count(sums.sent),
            format_count(sums.raw),
            sums.overhead_ms
        );
        whys.insert(0, saved);
        return whys.join("; ");
    }
    if sums.observed > 0.5 {
        whys.push(format!("only observed, {} tokens would have been hidden", format_count(sums.observed)));
    } else if sums.kept > 0.5 {
        let count = count_with_word(sums.kept, "request had", "requests had");
        let largest = sums.largest.as_ref().map(largest_words).unwrap_or_default();
        whys.push(format!("{count} nothing to trim yet{largest}"));
    }
    let total = sum_of(&sums.upstream_errors);
    if whys.is_empty() && total > 0.5 {
        whys.push("the provider gave no good answer".to_owned());
    }
    if whys.is_empty() {
        whys.push("no plan was ready".to_owned());
    }
    // Cache markers save dollars where no token is hidden.
    let nothing = if sums.saved > 0.0 { "nothing was hidden" } else { "nothing was saved" };
    format!("{nothing} in {requests}: {}", whys.join("; "))
}

fn passed_words((reason, count): &(String, f64)) -> String {
    let count = count_with_word(*count, "request", "requests");
    match reason.as_str() {
        "off" => format!("{count} passed unchanged because trimtab is switched off"),
        "asked" => format!("{count} passed unchanged because of the header `x-trimtab: off`"),
        reason => format!("{count} passed unchanged because of `{reason}`"),
    }
}

fn largest_words(largest: &LargestRequest) -> String {
    let LargestRequest { model, tokens, fill } = largest;
    let tokens = group_thousands(tokens.0);
    match fill {
        Some(fill) => {
            format!(" (the largest of {tokens} tokens fills {:.1} % of the window of {model})", fill * 100.0)
        }
        None => format!(" (the largest has {tokens} tokens; the window of {model} is not known)"),
    }
}

/// Says what the provider reported, and what that costs.
fn usage_words(sums: &ProxySums) -> Option<String> {
    let what = if sums.saved < 0.0 { "lost" } else { "saved" };
    (sums.reported_input > 0.5).then(|| {
        format!(
            "reported: {} input tokens, {:.0} % of them from the cache; ${:.4} spent, about ${:.4} {what}",
            format_count(sums.reported_input),
            percent_of(sums.cache_read, sums.reported_input),
            sums.spent,
            sums.saved.abs()
        )
    })
}

/// Says how caches were kept alive.
fn ping_words(sums: &ProxySums) -> Option<String> {
    (sums.pings > 0.5).then(|| {
        let pings = count_with_word(sums.pings, "ping", "pings");
        format!(
            "kept the provider's cache alive in pauses: {pings} for ${:.4}, part of what was spent",
            sums.ping_dollars
        )
    })
}

/// Says what keeping caches alive would have saved, where that is worth a word.
pub(super) fn propose_keep_alive(trial: &KeepAliveTrial) -> Option<String> {
    (trial.net_dollars() >= WORTH_A_WORD).then(|| {
        format!(
            "keeping the provider's cache alive in pauses would have saved about ${:.2} here: {} for ${:.2} instead of ${:.2} for writing \
             it again; `--keep-alive auto` turns it on",
            trial.net_dollars(),
            count_with_word(Tokens(trial.pings).to_float(), "ping", "pings"),
            trial.ping_dollars,
            trial.saved_dollars
        )
    })
}

/// The least US dollars for which keeping caches alive is proposed.
const WORTH_A_WORD: f64 = 0.05;

/// Says what the provider refused or did not answer.
fn upstream_words(sums: &ProxySums) -> Option<String> {
    let mut words = Vec::new();
    let total = sum_of(&sums.upstream_errors);
    if total > 0.5 {
        let requests = count_with_word(total, "request", "requests");
        words.push(format!("no good answer to {requests} ({})", by_kind(&sums.upstream_errors)));
    }
    if sums.overflows > 0.5 {
        let answers = count_with_word(sums.overflows, "answer", "answers");
        words.push(format!("{answers} that a request is too long"));
    }
    (!words.is_empty()).then(|| format!("errors of the provider: {}", words.join("; ")))
}

fn by_kind(counts: &[(String, f64)]) -> String {
    let each: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{kind}: {}", format_count(*count))).collect();
    each.join(", ")
}

fn sum_of(counts: &[(String, f64)]) -> f64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn count_with_word(count: f64, one: &str, several: &str) -> String {
    let words = if (0.5..1.5).contains(&count) { one } else { several };
    format!("{} {words}", format_count(count))
}

fn format_count(count: f64) -> String {
    group_thousands(Tokens(1).scale(count).0)
}

fn percent_of(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of * 100.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sums: &ProxySums, expected: &[&str]) {
        assert_eq!(describe_sums(sums, "do this"), expected);
    }

    fn some(words: &[(&str, f64)]) -> Vec<(String, f64)> {
        words.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    #[test]
    fn a_loss_is_called_a_loss_and_what_passed_is_told_with_its_reason() {
        let sums = ProxySums {
            conversations: 5.0,
            raw: 1000.0,
            sent: 900.0,
            reported_input: 950.0,
            cache_read: 475.0,
            spent: 0.5,
            saved: -0.25,
            passed: some(&[("context_management: compact_20260112", 3.0)]),
            ..ProxySums::default()
        };
        check(
            &sums,
            &[
                "5 requests: 900 of 1,000 tokens sent (10.0 % less), with 0.0 ms of work for each request; 3 requests passed unchanged because of `context_management: compact_20260112`",
                "reported: 950 input tokens, 50 % of them from the cache; $0.5000 spent, about $0.2500 lost",
            ],
        );
    }

    #[test]
    fn silence_is_told_with_what_to_do() {
        check(&ProxySums::default(), &["nothing was saved: no request reached trimtab", "do this"]);
        let sums = ProxySums { others: 1.0, ..ProxySums::default() };
        check(
            &sums,
            &["nothing was saved: 1 request arrived, but none asked a model for an answer", "do this"],
        );
    }

    #[test]
    fn a_short_conversation_is_told_with_its_share_of_the_window() {
        let largest = LargestRequest { model: "m".to_owned(), tokens: Tokens(20_000), fill: Some(0.1) };
        let sums = ProxySums {
            conversations: 2.0,
            kept: 2.0,
            raw: 30_000.0,
            sent: 30_000.0,
            largest: Some(largest.clone()),
            ..ProxySums::default()
        };
        check(
            &sums,
            &[
                "nothing was saved in 2 requests: 2 requests had nothing to trim yet (the largest of 20,000 tokens fills 10.0 % of the window of m)",
            ],
        );
        let marked = ProxySums { saved: 0.25, ..sums.clone() };
        assert!(
            describe_sums(&marked, "")[0].starts_with("nothing was hidden in 2 requests: 2 requests had")
        );
        let sums = ProxySums { largest: Some(LargestRequest { fill: None, ..largest }), ..sums };
        assert!(
            describe_sums(&sums, "")[0]
                .ends_with("(the largest has 20,000 tokens; the window of m is not known)")
        );
    }

    #[test]
    fn troubles_are_told_apart() {
        let sums = ProxySums {
            conversations: 4.0,
            upstream_errors: some(&[("529", 2.0), ("unreachable", 1.0)]),
            late_plans: 1.0,
            faults: some(&[("plan", 1.0)]),
            ..ProxySums::default()
        };
        check(
            &sums,
            &[
                "nothing was saved in 4 requests: the provider gave no good answer",
                "errors of the provider: no good answer to 3 requests (529: 2, unreachable: 1)",
                "late plans: 1 plan was not ready in time; these requests were sent with an earlier plan, unchanged, or late",
                "errors in trimtab: 1 error (plan: 1)",
            ],
        );
    }

    #[test]
    fn pings_are_told_and_proposed_where_they_would_have_paid() {
        let sums = ProxySums {
            conversations: 1.0,
            kept: 1.0,
            pings: 2.0,
            ping_dollars: 0.1,
            ..ProxySums::default()
        };
        check(
            &sums,
            &[
                "nothing was saved in 1 request: 1 request had nothing to trim yet",
                "kept the provider's cache alive in pauses: 2 pings for $0.1000, part of what was spent",
            ],
        );
        let trial = KeepAliveTrial { pings: 5, ping_dollars: 0.2, saved_dollars: 0.62 };
        assert_eq!(
            propose_keep_alive(&trial).as_deref(),
            Some(
                "keeping the provider's cache alive in pauses would have saved about $0.42 here: 5 pings for $0.20 instead of $0.62 for \
                 writing it again; `--keep-alive auto` turns it on"
            )
        );
        assert_eq!(propose_keep_alive(&KeepAliveTrial { saved_dollars: 0.21, ..trial }), None);
    }

    #[test]
    fn what_is_not_kept_is_told_with_its_reason() {
        let unkept = [(UnkeptReason::QueueFull, 2223), (UnkeptReason::NoPlan, 1)];
        let expected =
            "not kept in the store: 2,223 more came than could be written; 1 sent without a new plan";
        assert_eq!(unkept_words(&unkept).as_deref(), Some(expected));
        assert_eq!(unkept_words(&[]), None);
    }
}
