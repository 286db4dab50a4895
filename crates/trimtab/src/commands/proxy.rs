//! `trimtab proxy`: stands between agents and their providers. Takes requests at an address; gives answers until it is asked
//! to stop. It reports on standard error.

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use trimtab_core::{
    RecallHint,
    policy::{ConfigFile, Folding},
};
use trimtab_store::project_named;

use super::sums::say_sums;
use crate::{
    args::{Amount, FittingArgs, PageScope, ProxyArgs as Args, StoreViewArgs},
    hint::{HintReader, absolute_path, recall_hint},
    output,
    page::PageOptions,
    proxy::{
        self, ClientTls, Proxy, ProxyLimits, ProxyOptions, SessionStorage, TimeSource, UpstreamEntry,
        fold::SummarySettings,
        keep_alive::{KeepAliveSettings, PingTiming},
        log::{LogLevel, ProxyLog},
        store_writer::StoreWriter,
    },
    settings::{
        self, SettingsFiles, in_force,
        keeping::{resolve_retention, resolve_secrets},
        marking::resolve_markers,
    },
    store,
};

/// Time in which a request must have arrived.
const ARRIVAL: Duration = Duration::from_secs(120);

pub(crate) fn run(asked: &Args) -> Result<()> {
    let limits = ProxyLimits {
        request: mebibytes_to_bytes(asked.max_request),
        in_flight: usize::try_from(asked.max_in_flight)?,
        arrival: ARRIVAL,
        upstream: Duration::from_secs(asked.upstream_timeout),
        grace: Duration::from_secs(asked.grace),
    };
    // Agents elsewhere have their own program, and no way to a path of this machine.
    let mut listen = asked.listen;
    listen.set_port(asked.port.unwrap_or(listen.port()));
    let reader = if listen.ip().is_loopback() { HintReader::Neighbour } else { HintReader::Anybody };
    let mut wanted = proxy_options(&asked.fitting, limits, reader)?;
    wanted.page = page_options(&asked.fitting, asked.page, &wanted.recall)?;
    wanted.announce = !asked.no_headers;
    wanted.token.clone_from(&asked.token);
    wanted.allowed_hosts.clone_from(&asked.allow_host);
    wanted.allowed_origins.clone_from(&asked.allow_origin);
    let policy = wanted.policy.name.clone();
    let tls =
        |certificate: &PathBuf| ClientTls::read(certificate, asked.tls_key.as_deref().unwrap_or(certificate));
    wanted.tls = asked.tls_cert.as_ref().map(tls).transpose()?;
    let scheme = if wanted.tls.is_some() { "https" } else { "http" };
    proxy::start_runtime()?.block_on(async {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}; --port PORT chooses another port"))?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(Proxy::new(wanted, address, ProxyLog::to_terminal(asked.log))?);
        banner(asked, &policy, scheme, address)?;
        let stop = stop_asked()?;
        proxy::outlive_file_limits();
        // Whoever waits for this line may send requests, and signals, at once.
        output::print_note(format_args!("listening at {scheme}://{address}"));
        proxy::serve(Arc::clone(&proxy), listener, stop).await?;
        say_sums(&proxy, "point the base URL of an agent at it: `trimtab proxy --help` says how");
        Ok(())
    })
}

/// Says what is done with requests, and how an agent is pointed at the proxy.
fn banner(asked: &Args, policy: &str, scheme: &str, address: SocketAddr) -> Result<()> {
    if asked.log == LogLevel::Quiet {
        return Ok(());
    }
    let does = match (asked.fitting.off, asked.fitting.observe) {
        (true, _) => "switched off: every request passes unchanged".to_owned(),
        (false, true) => format!("policy {policy}, only observed: every request passes unchanged"),
        (false, false) => format!("policy {policy}"),
    };
    let kept = match kept_in(&asked.fitting)? {
        Some(store) => format!("sessions are stored in {}", store.display()),
        None => "nothing is stored".to_owned(),
    };
    output::print_note(format_args!("{does}; {kept}"));
    if asked.page != PageScope::Off {
        output::print_note(format_args!("see what it does: open {scheme}://{address}/ in a browser"));
    }
    // What listens everywhere is reached by the name of this machine.
    let host =
        if address.ip().is_unspecified() { format!("HOST:{}", address.port()) } else { address.to_string() };
    output::print_note("point an agent at it with the variable that it reads:");
    output::print_line(format_args!("  export ANTHROPIC_BASE_URL={scheme}://{host}"));
    output::print_line(format_args!("  export OPENAI_BASE_URL={scheme}://{host}/v1"));
    output::print_line(format_args!("  export GOOGLE_GEMINI_BASE_URL={scheme}://{host}"));
    Ok(())
}

/// Turns what was said on the command line into what a proxy is made with.
pub(super) fn proxy_options(
    fitting: &FittingArgs,
    limits: ProxyLimits,
    reader: HintReader,
) -> Result<ProxyOptions> {
    settings::warn_of_unknown_variables();
    let files = SettingsFiles::read()?;
    let in_force = in_force(&asked_settings(fitting), &files)?;
    Ok(ProxyOptions {
        upstream: fitting.upstream.clone(),
        upstream_tables: upstream_tables(&files),
        policy: in_force.policy,
        budget: fitting.budget,
        observe: fitting.observe,
        off: fitting.off,
        announce: true,
        token: None,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        plan_time: Duration::from_millis(fitting.plan_time),
        sessions: usize::try_from(fitting.sessions)?,
        limits,
        keeping: open_storage(fitting, &files)?,
        recall: match kept_in(fitting)? {
            Some(store) => recall_hint(&store, reader),
            None => RecallHint::Nothing,
        },
        intent: fitting.intent,
        summaries: summary_settings(fitting, in_force.folding)?,
        keep_alive: KeepAliveSettings {
            mode: fitting.keep_alive,
            hourly_dollars: fitting.keep_alive_dollars,
            timing: if fitting.keep_alive_at_once { PingTiming::AtOnce } else { PingTiming::WhenDue },
        },
        markers: resolve_markers(fitting.markers, &files).0,
        project: fitting.project.as_deref().and_then(project_named),
        time: TimeSource::System,
        tls: None,
        page: None,
    })
}

/// Says what browsers are shown; nothing where there is no page. Where nothing is stored, what the proxy did is shown all the same.
fn page_options(fitting: &FittingArgs, whose: PageScope, recall: &RecallHint) -> Result<Option<PageOptions>> {
    if whose == PageScope::Off {
        return Ok(None);
    }
    let files = SettingsFiles::read()?;
    let view = StoreViewArgs {
        store: fitting.store.clone(),
        project: fitting.project.clone(),
        // A proxy for every project shows every project, also sessions whose project nobody named.
        all: whose == PageScope::All || fitting.project.is_none(),
    };
    let (_, kept_rows) = resolve_retention(&fitting.keep, &files)?;
    let mut settings = in_force(&asked_settings(fitting), &files)?.rows;
    settings.push(resolve_markers(fitting.markers, &files).1);
    settings.extend(kept_rows);
    Ok(Some(PageOptions {
        view: kept_in(fitting)?.map(|_| view),
        secrets: resolve_secrets(false, &files)?,
        settings,
        budget: fitting.budget,
        recall: recall.clone(),
        token: None,
        allowed_hosts: Vec::new(),
        metrics: None,
    }))
}

/// Returns what the command line says about settings.
fn asked_settings(fitting: &FittingArgs) -> settings::CommandLineSettings<'_> {
    settings::CommandLineSettings {
        policy: fitting.policy.as_deref(),
        model: None,
        budget: fitting.budget.map(Amount::Tokens),
        set: &fitting.set,
        fold: fitting.fold,
        spent: 0.0,
        said_model: None,
    }
}

/// Returns the upstreams that files give: the user's first, which those of a project do not change.
pub(super) fn upstream_tables(files: &SettingsFiles) -> Vec<UpstreamEntry> {
    let from = |config: &ConfigFile, from_project: bool| -> Vec<UpstreamEntry> {
        let given = config.upstreams.iter().cloned().map(|table| UpstreamEntry {
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
fn summary_settings(fitting: &FittingArgs, folding: Folding) -> Result<SummarySettings> {
    let key = fitting.summary_key_env.as_ref().map(|name| {
        std::env::var(name)
            .with_context(|| format!("--summary-key-env {name}: the environment has no such variable"))
    });
    Ok(SummarySettings {
        folding,
        endpoint: fitting.summary_endpoint.clone(),
        model: fitting.summary_model.clone(),
        key: key.transpose()?,
        limit: Duration::from_secs(fitting.summary_timeout),
    })
}

/// Opens the store, unless nothing is to be kept.
fn open_storage(fitting: &FittingArgs, files: &SettingsFiles) -> Result<SessionStorage> {
    let (retention, _) = resolve_retention(&fitting.keep, files)?;
    if kept_in(fitting)?.is_none() {
        return Ok(SessionStorage::Nothing);
    }
    Ok(SessionStorage::Store(StoreWriter::start(store::open_or_create(&fitting.store)?, retention)?))
}

/// Returns the file that conversations are kept in; nothing where none are: where nothing is changed, nothing is hidden either.
pub(super) fn kept_in(fitting: &FittingArgs) -> Result<Option<PathBuf>> {
    if fitting.no_store || fitting.observe || fitting.off {
        return Ok(None);
    }
    Ok(Some(absolute_path(&store::path(&fitting.store)?)))
}

pub(super) fn mebibytes_to_bytes(count: u32) -> usize {
    usize::try_from(u64::from(count) * 1024 * 1024).unwrap_or(usize::MAX)
}

/// Returns what ends when somebody asks the program to stop.
#[cfg(unix)]
pub(super) fn stop_asked() -> Result<impl Future<Output = ()>> {
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
pub(super) fn stop_asked() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
