//! `trimtab wrap`: runs an agent behind its own proxy. Takes the agent's name and arguments; gives the agent's exit
//! code, and says at the end what was saved. Never changes the user's settings.

pub(super) mod agents;
mod file;

use std::{
    ffi::{OsStr, OsString},
    io::IsTerminal,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::oneshot,
};

use trimtab_store::{PROJECT_VARIABLE, current_project};

use self::{
    agents::{AGENTS, ANY, AgentSetup, fill_url},
    file::TemporaryFile,
};
use super::{
    proxy::{kept_in, mebibytes_to_bytes, proxy_options},
    sums::{propose_keep_alive, say_sums},
};
use crate::{
    args::WrapArgs,
    hint::HintReader,
    near::did_you_mean,
    output::{self, Output},
    programs::find_program,
    proxy::{self, Proxy, ProxyLimits, log::ProxyLog},
};

/// Limits for one agent on this machine.
const LIMITS: ProxyLimits = ProxyLimits {
    request: 0,
    in_flight: 256,
    arrival: Duration::from_secs(120),
    upstream: Duration::from_secs(900),
    grace: Duration::from_secs(2),
};

/// The largest request that is taken, in MiB.
const LARGEST: u32 = 64;

pub(crate) fn run(asked: &WrapArgs, out: &mut Output) -> Result<()> {
    let Some((name, arguments)) = asked.command.split_first().filter(|_| !asked.list) else {
        return list_agents(out);
    };
    let known = AGENTS.iter().find(|agent| agent.name == name);
    let (agent, program) = known.map_or((&ANY, name.as_os_str()), |agent| (agent, agent.program.as_ref()));
    // Whoever writes `--` between the name and the arguments means the same.
    let arguments = arguments.strip_prefix(&[OsString::from("--")]).unwrap_or(arguments);
    // Before anything is made for it.
    let file = find_program(program).with_context(|| explain_not_found(program))?;
    let mut wanted = proxy_options(
        &asked.fitting,
        ProxyLimits { request: mebibytes_to_bytes(LARGEST), ..LIMITS },
        HintReader::Child,
    )?;
    wanted.project = wanted.project.or_else(current_project);
    let project = wanted.project.clone();
    let store = kept_in(&asked.fitting)?;
    let code = proxy::start_runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(Proxy::new(wanted, address, ProxyLog::with_buffer())?);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(proxy::serve(Arc::clone(&proxy), listener, async {
            let _ = stopped.await;
        }));
        let url = format!("http://{address}");
        let ended =
            run_agent(agent, (program, &file), arguments, &url, store.as_deref(), project.as_deref()).await;
        let _ = stop.send(());
        let _ = serving.await;
        let status = ended?;
        for line in proxy.log.take_lines() {
            output::print_note(line);
        }
        say_sums(&proxy, agent.if_silent);
        if let Some(proposal) = propose_keep_alive(&proxy.missed_keep_alive()) {
            output::print_note(proposal);
        }
        anyhow::Ok(code_of(status))
    })?;
    if code != 0 {
        // The agent's exit code is ours: there is nothing left to clean up or to say.
        std::process::exit(code);
    }
    Ok(())
}

fn list_agents(out: &mut Output) -> Result<()> {
    for agent in AGENTS {
        out.write_line(format_args!("{:16} {}", agent.name, agent.about))?;
    }
    Ok(())
}

async fn run_agent(
    agent: &AgentSetup,
    (program, found): (&OsStr, &Path),
    arguments: &[OsString],
    url: &str,
    store: Option<&Path>,
    project: Option<&str>,
) -> Result<ExitStatus> {
    // Windows finds no `.cmd` by its name alone, and agents are installed as such. Elsewhere a program sees the name that was typed.
    let mut command = Command::new(if cfg!(windows) { found.as_os_str() } else { program });
    let is_plain =
        arguments.first().is_some_and(|first| agent.plain_commands.iter().any(|plain| first == plain));
    let file = agent.file.as_ref().filter(|_| !is_plain);
    let file = file.map(|file| TemporaryFile::write(file.name, &fill_url(file.text, url))).transpose()?;
    if !is_plain {
        command.args(agent.arguments.iter().map(|argument| match &file {
            Some(file) if *argument == "{file}" => file.path().as_os_str().to_owned(),
            _ => OsString::from(fill_url(argument, url)),
        }));
    }
    command.args(arguments);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    for (name, value) in agent.variables {
        command.env(name, fill_url(value, url));
    }
    // What notes name is recalled from where it is kept.
    if let Some(store) = store {
        command.env("TRIMTAB_STORE", store);
    }
    // Whatever folder the agent works in, it sees what is kept of this project.
    if let Some(project) = project {
        command.env(PROJECT_VARIABLE, project);
    }
    // A proxy for the web must not be asked for an address on this machine.
    for name in ["NO_PROXY", "no_proxy"] {
        let before = std::env::var(name).unwrap_or_default();
        let comma = if before.is_empty() { "" } else { "," };
        command.env(name, format!("{before}{comma}127.0.0.1"));
    }
    let shown = program.display();
    announce(agent, &shown.to_string(), url);
    let mut child = command.spawn().with_context(|| format!("`{shown}` cannot be started"))?;
    wait_for_agent(&mut child).await
}

/// Says that a program is missing, and what to do.
fn explain_not_found(program: &OsStr) -> String {
    let shown = program.display().to_string();
    let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    let near = did_you_mean(&shown, &names);
    format!(
        "`{shown}` not found in PATH{near}: install it, or give its path; `trimtab wrap --list` lists the known agents"
    )
}

/// Says what is going to happen, to somebody who watches, and what is missing.
fn announce(agent: &AgentSetup, program: &str, url: &str) {
    for name in agent.needs {
        if std::env::var_os(name).is_none_or(|value| value.is_empty()) {
            output::print_note(format_args!(
                "{program} needs {name} here, which is not set: {}",
                agent.if_silent
            ));
        }
    }
    if std::io::stderr().is_terminal() {
        output::print_note(format_args!(
            "starting {program} behind the proxy at {url}; a summary follows when it ends"
        ));
    }
}

/// Waits for the agent, and hands on the signals that are meant for it.
#[cfg(unix)]
async fn wait_for_agent(child: &mut Child) -> Result<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    // At a terminal the agent gets what is typed by itself, as one of the foreground's processes.
    let typed = std::io::stdin().is_terminal();
    loop {
        let (sent, by_terminal) = tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = terminate.recv() => (Signal::TERM, false),
            _ = hang_up.recv() => (Signal::HUP, true),
            _ = interrupt.recv() => (Signal::INT, true),
            _ = quit.recv() => (Signal::QUIT, true),
        };
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| !(by_terminal && typed)) {
            // It may have ended just now.
            let _ = kill_process(pid, sent);
        }
    }
}

/// Waits for the agent.
#[cfg(not(unix))]
async fn wait_for_agent(child: &mut Child) -> Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = tokio::signal::ctrl_c() => {}
        }
    }
}

/// Returns the exit code that shells would report: that of the agent, or 128 and the signal that ended it.
fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
    }
    #[cfg(not(unix))]
    {
        status.code().unwrap_or(1)
    }
}
