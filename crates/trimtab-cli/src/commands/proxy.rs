//! `trimtab proxy`: stands between agents and their providers. Takes requests at an address; gives answers until it is asked
//! to stop. What it did is said on standard error.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use trimtab::{Config, Folding, RecallHint, Tokens};
use trimtab_store::project_named;

use crate::{
    args::{Fitting, Proxy as Args},
    hint::{Reader, absolute, recall_hint},
    output::{self, grouped},
    proxy::{
        self, Asked, Given, Keeping, Limits, Proxy, fold::Summaries, keeper::Keeper, log::Log, metrics::Sums,
        store_health::Unkept,
    },
    settings::{self, Files, in_force, keeping::retention},
    store,
};

/// Time in which a request must have arrived.
const ARRIVAL: Duration = Duration::from_secs(120);

pub(crate) fn run(asked: &Args) -> Result<()> {
    let limits = Limits {
        request: mebibytes(asked.max_request),
        in_flight: usize::try_from(asked.max_in_flight)?,
        arrival: ARRIVAL,
        upstream: Duration::from_secs(asked.upstream_timeout),
        grace: Duration::from_secs(asked.grace),
    };
    // Agents elsewhere have their own program, and no way to a path of this machine.
    let reader = if asked.listen.ip().is_loopback() { Reader::Neighbour } else { Reader::Anybody };
    let mut wanted = wanted(&asked.fitting, limits, reader)?;
    wanted.announce = !asked.no_headers;
    wanted.token.clone_from(&asked.token);
    wanted.allowed_hosts.clone_from(&asked.allow_host);
    wanted.allowed_origins.clone_from(&asked.allow_origin);
    proxy::runtime()?.block_on(async {
        let listener = TcpListener::bind(asked.listen).await.with_context(|| {
            format!("{} cannot be listened at; --listen names another address", asked.listen)
        })?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(Proxy::new(wanted, address, Log::speaking(asked.log))?);
        output::note(format_args!("listening at http://{address}"));
        let stop = stop_asked()?;
        proxy::serve(Arc::clone(&proxy), listener, stop).await?;
        say_sums(&proxy);
        Ok(())
    })
}

/// Turns what was said on the command line into what a proxy is made with.
pub(super) fn wanted(fitting: &Fitting, limits: Limits, reader: Reader) -> Result<Asked> {
    let asked = settings::Asked {
        policy: fitting.policy.as_deref(),
        model: None,
        budget: fitting.budget,
        set: &fitting.set,
        fold: fitting.fold,
        spent: 0.0,
        said_model: None,
    };
    let files = Files::read()?;
    let in_force = in_force(&asked, &files)?;
    Ok(Asked {
        upstream: fitting.upstream.clone(),
        upstream_tables: upstream_tables(&files),
        policy: in_force.policy,
        budget: fitting.budget.map(Tokens),
        observe: fitting.observe,
        off: fitting.off,
        announce: true,
        token: None,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        plan_time: Duration::from_millis(fitting.plan_time),
        sessions: usize::try_from(fitting.sessions)?,
        limits,
        keeping: keeping(fitting, &files)?,
        recall: match kept_in(fitting)? {
            Some(store) => recall_hint(&store, reader),
            None => RecallHint::Nothing,
        },
        intent: fitting.intent,
        summaries: summaries(fitting, in_force.folding)?,
        project: fitting.project.as_deref().and_then(project_named),
    })
}

/// Returns the upstreams that files give: the user's first, which those of a project do not change.
fn upstream_tables(files: &Files) -> Vec<Given> {
    let from = |config: &Config, from_project: bool| -> Vec<Given> {
        let given = config.upstreams.iter().cloned().map(|table| Given {
            place: format!("{}, line {}: [upstream.{}]", config.file, table.line, table.name),
            name: table.name,
            url: table.url,
            wire: table.wire,
            model_prefix: table.model_prefix,
            from_project,
        });
        given.collect()
    };
    let user = files.user.iter().flat_map(|config| from(config, false));
    user.chain(files.local.iter().flat_map(|config| from(config, true))).collect()
}

/// Settles where summaries come from.
fn summaries(fitting: &Fitting, folding: Folding) -> Result<Summaries> {
    let key = fitting.summary_key_env.as_ref().map(|name| {
        std::env::var(name)
            .with_context(|| format!("--summary-key-env {name}: the environment has no such variable"))
    });
    Ok(Summaries {
        folding,
        endpoint: fitting.summary_endpoint.clone(),
        model: fitting.summary_model.clone(),
        key: key.transpose()?,
        limit: Duration::from_secs(fitting.summary_timeout),
    })
}

/// Opens the store, unless nothing is to be kept.
fn keeping(fitting: &Fitting, files: &Files) -> Result<Keeping> {
    let (retention, _) = retention(&fitting.keep, files)?;
    if kept_in(fitting)?.is_none() {
        return Ok(Keeping::Nothing);
    }
    Ok(Keeping::Store(Keeper::start(store::open(&fitting.store)?, retention)?))
}

/// Returns the file that conversations are kept in; nothing where none are: where nothing is changed, nothing is hidden either.
pub(super) fn kept_in(fitting: &Fitting) -> Result<Option<PathBuf>> {
    if fitting.no_store || fitting.observe || fitting.off {
        return Ok(None);
    }
    Ok(Some(absolute(&store::path(&fitting.store)?)))
}

pub(super) fn mebibytes(count: u32) -> usize {
    usize::try_from(u64::from(count) * 1024 * 1024).unwrap_or(usize::MAX)
}

/// Returns what ends when somebody asks the program to stop.
#[cfg(unix)]
fn stop_asked() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns what ends when somebody asks the program to stop.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems, where it can fail")]
fn stop_asked() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Says what came of it all.
pub(super) fn say_sums(proxy: &Proxy) {
    for line in words(&proxy.metrics.sums()).into_iter().chain(unkept_words(&proxy.unkept())) {
        output::note(line);
    }
}

/// Says what was not kept, and why.
fn unkept_words(unkept: &[(Unkept, u64)]) -> Option<String> {
    let reasons: Vec<String> =
        unkept.iter().map(|(why, count)| format!("{} {}", grouped(*count), why.words())).collect();
    (!reasons.is_empty()).then(|| format!("not kept in the store: {}", reasons.join("; ")))
}

fn words(sums: &Sums) -> Vec<String> {
    if sums.answers < 0.5 {
        return vec!["no conversation came by".to_owned()];
    }
    let tokens = |count: f64| grouped(Tokens(1).scaled(count).0);
    let share = |part: f64, of: f64| if of > 0.0 { part / of * 100.0 } else { 0.0 };
    let mut lines = vec![format!(
        "{} requests: {} tokens came, {} were sent ({:.1} % less), {:.1} ms each",
        tokens(sums.answers),
        tokens(sums.raw),
        tokens(sums.sent),
        share(sums.raw - sums.sent, sums.raw),
        sums.overhead_ms
    )];
    if sums.observed > 0.0 {
        lines.push(format!("{} tokens would have been hidden", tokens(sums.observed)));
    }
    if sums.reported_input > 0.0 {
        let saved = if sums.saved < 0.0 { "lost" } else { "saved" };
        lines.push(format!(
            "reported: {} input tokens, {:.0} % of them from the cache; ${:.4} spent, about ${:.4} {saved}",
            tokens(sums.reported_input),
            share(sums.cache_read, sums.reported_input),
            sums.spent,
            sums.saved.abs()
        ));
    }
    for (reason, count) in &sums.passed {
        lines.push(format!("{} requests passed untouched: {reason}", tokens(*count)));
    }
    if sums.overflows + sums.faults > 0.0 {
        lines.push(format!(
            "{} answers said that a request is too long; {} faults of the proxy's own",
            tokens(sums.overflows),
            tokens(sums.faults)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_called_a_loss_and_what_passed_is_told_with_its_reason() {
        let sums = Sums {
            answers: 2.0,
            raw: 1000.0,
            sent: 900.0,
            reported_input: 950.0,
            cache_read: 475.0,
            spent: 0.5,
            saved: -0.25,
            passed: vec![("context_management: compact_20260112".to_owned(), 3.0)],
            ..Sums::default()
        };
        assert_eq!(
            words(&sums),
            [
                "2 requests: 1,000 tokens came, 900 were sent (10.0 % less), 0.0 ms each",
                "reported: 950 input tokens, 50 % of them from the cache; $0.5000 spent, about $0.2500 lost",
                "3 requests passed untouched: context_management: compact_20260112",
            ]
        );
    }

    #[test]
    fn what_is_not_kept_is_told_with_its_reason() {
        let unkept = [(Unkept::QueueFull, 2223), (Unkept::NoPlan, 1)];
        let expected =
            "not kept in the store: 2,223 more came than could be written; 1 sent without a new plan";
        assert_eq!(unkept_words(&unkept).as_deref(), Some(expected));
        assert_eq!(unkept_words(&[]), None);
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert_eq!(words(&Sums::default()), ["no conversation came by"]);
    }
}
