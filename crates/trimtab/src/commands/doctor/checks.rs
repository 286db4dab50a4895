//! The checks of `trimtab doctor`, one function each. Each takes nothing or the files of settings; gives one [`DoctorCheck`]. None changes anything.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use trimtab_core::{
    Counter, Format, Tokens,
    count::{Tokenizer, Vocabulary},
    parse,
    prices::prices_date,
    write,
};
use trimtab_replay::agents as readers;
use trimtab_store::{Sqlite, Store};

use super::DoctorCheck;
use crate::{
    args::{StorePathArgs, parse_address},
    commands::{proxy::upstream_tables, wrap::agents::AGENTS as WRAPPED},
    discovery::{AGENTS, Machine, discover},
    output::{check_writable, count_with_noun},
    prices, programs,
    proxy::Upstreams,
    settings::{SettingsFiles, environment_variables, foreign_variables, unknown_variables},
    store,
};

/// Where the proxy listens where nobody says otherwise.
const USUAL_ADDRESS: &str = "127.0.0.1:8790";

/// How long a proxy that listens there may take to say so.
const HEALTH_TIME: Duration = Duration::from_millis(500);

pub(super) fn check_version() -> DoctorCheck {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    DoctorCheck::ok("version", format!("trimtab {} on {system} {machine}", env!("CARGO_PKG_VERSION")))
}

/// Reads and writes a small request, and counts a text whose count is known with each vocabulary.
pub(super) fn self_test() -> DoctorCheck {
    let request = br#"{"model":"m","messages":[{"role":"user","content":"\u00e9"}]}"#;
    let is_same = parse(request.to_vec()).is_ok_and(|history| write(&history, &[]) == request);
    let start = Instant::now();
    let vocabularies = [Vocabulary::O200k, Vocabulary::Cl100k];
    let counts = vocabularies
        .iter()
        .all(|vocabulary| Counter::new(Tokenizer::Exact(*vocabulary)).count_text("hello world") == Tokens(2));
    let found = format!(
        "{}; recordings of {} agents; {} vocabularies, loaded in {} ms",
        Format::ALL.map(Format::name).join(", "),
        readers().count(),
        vocabularies.len(),
        start.elapsed().as_millis()
    );
    if is_same && counts {
        DoctorCheck::ok("formats", found)
    } else {
        DoctorCheck::bad("formats", "a request or a count came out wrong", Some("install trimtab again"))
    }
}

pub(super) fn check_models() -> DoctorCheck {
    match (prices::models(), prices::path()) {
        (Ok(models), own) => {
            let own = own.map_or_else(String::new, |own| format!(", and {}", own.display()));
            DoctorCheck::ok("models", format!("{}, prices of {}{own}", models.len(), prices_date()))
        }
        (Err(fault), _) => DoctorCheck::bad(
            "models",
            format!("{fault:#}"),
            Some("correct the file of prices, or unset TRIMTAB_PRICES"),
        ),
    }
}

/// Names the files that settings come from.
pub(super) fn check_settings_files(files: &SettingsFiles) -> DoctorCheck {
    let place = |there: bool| if there { "" } else { " (not there)" };
    let user = files.user_file.as_ref().map_or_else(
        || "no folder for the user's settings is known".to_owned(),
        |file| format!("{}{}", file.display(), place(files.user.is_some())),
    );
    DoctorCheck::ok("files", format!("./trimtab.toml{}, {user}", place(files.local.is_some())))
}

/// Lists what the environment says, and what in it is no setting.
pub(super) fn check_environment() -> DoctorCheck {
    let set: Vec<String> = environment_variables("TRIMTAB_")
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let found = if set.is_empty() { "no TRIMTAB_* variable is set".to_owned() } else { set.join(" ") };
    let unknown = unknown_variables();
    if unknown.is_empty() {
        return DoctorCheck::ok("environment", found);
    }
    DoctorCheck::note(
        "environment",
        format!("{found}; no setting: {}", unknown.join("; ")),
        "rename or unset what is no setting",
    )
}

/// Lists settings under the names of another program, where there are any.
pub(super) fn names_of_others() -> Option<DoctorCheck> {
    let found = foreign_variables();
    (!found.is_empty()).then(|| DoctorCheck::ok("patchpal", found.join(" ")))
}

/// Says where requests go.
pub(super) fn check_upstreams(files: &SettingsFiles) -> DoctorCheck {
    let flags: Vec<String> = std::env::var("TRIMTAB_UPSTREAM")
        .map(|list| list.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect())
        .unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok();
    match Upstreams::resolve(&flags, &upstream_tables(files), variable, listen_address()) {
        Ok((upstreams, notes)) => {
            let each =
                upstreams.wire_addresses().into_iter().map(|(name, address)| format!("{name} {address}"));
            DoctorCheck::ok("upstreams", each.chain(notes).collect::<Vec<_>>().join("; "))
        }
        Err(fault) => DoctorCheck::bad(
            "upstreams",
            format!("{fault:#}"),
            Some("write NAME=URL; `trimtab proxy --help` has examples"),
        ),
    }
}

/// Looks whether sessions can be stored.
pub(super) fn check_store() -> DoctorCheck {
    let place = StorePathArgs { path: std::env::var_os("TRIMTAB_STORE").map(Into::into) };
    let path = match store::path(&place) {
        Ok(path) => path,
        Err(fault) => return DoctorCheck::bad("store", format!("{fault:#}"), None),
    };
    let shown = path.display();
    if !path.exists() {
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        return match check_writable(&folder.join("store")) {
            Ok(()) => DoctorCheck::ok("store", format!("{shown}: nothing is stored yet")),
            Err(_) => DoctorCheck::bad(
                "store",
                format!("{shown}: {} cannot be written to", folder.display()),
                Some("change its permissions, or name another file: TRIMTAB_STORE=PATH"),
            ),
        };
    }
    let disk = Sqlite::open_to_read(&path).and_then(|store| store.disk_usage());
    let disk = match disk {
        Ok(disk) => disk,
        Err(fault) => {
            return DoctorCheck::bad(
                "store",
                fault.to_string(),
                Some("name another file: TRIMTAB_STORE=PATH"),
            );
        }
    };
    let sessions =
        count_with_noun(usize::try_from(disk.sessions).unwrap_or(usize::MAX), "session", "sessions");
    let found = format!("{shown}: {}, {sessions}", store::format_size(disk.bytes));
    match OpenOptions::new().append(true).open(&path) {
        Ok(_) => DoctorCheck::ok("store", found),
        Err(fault) => DoctorCheck::bad(
            "store",
            format!("{found}; it cannot be written to ({fault}), so nothing new is hidden"),
            Some("change its permissions, or name another file: TRIMTAB_STORE=PATH"),
        ),
    }
}

fn listen_address() -> SocketAddr {
    let named = std::env::var("TRIMTAB_LISTEN").ok().and_then(|words| parse_address(&words).ok());
    let mut listen =
        named.or_else(|| USUAL_ADDRESS.parse().ok()).unwrap_or_else(|| ([127, 0, 0, 1], 8790).into());
    if let Some(port) = std::env::var("TRIMTAB_PORT").ok().and_then(|port| port.parse().ok()) {
        listen.set_port(port);
    }
    listen
}

/// Looks whether the proxy could listen.
pub(super) fn check_port() -> DoctorCheck {
    let listen = listen_address();
    match TcpListener::bind(listen) {
        Ok(_) => DoctorCheck::ok("port", format!("{listen} is free for `trimtab proxy`")),
        Err(fault) if fault.kind() == ErrorKind::AddrInUse => {
            if is_ours(listen) {
                return DoctorCheck::ok("port", format!("a trimtab proxy listens at {listen}"));
            }
            let other = listen.port().checked_add(1).unwrap_or(8791);
            DoctorCheck::note(
                "port",
                format!("{listen} is in use by another program"),
                format!("`trimtab proxy --port {other}`; `trimtab wrap` finds a free port by itself"),
            )
        }
        Err(fault) => DoctorCheck::bad(
            "port",
            format!("{listen}: {fault}"),
            Some("`trimtab proxy --listen ADDR` names another address"),
        ),
    }
}

/// Asks what listens there whether it is a proxy of ours.
fn is_ours(listen: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&listen, HEALTH_TIME)?;
        stream.set_read_timeout(Some(HEALTH_TIME))?;
        stream.set_write_timeout(Some(HEALTH_TIME))?;
        stream.write_all(
            format!("GET /trimtab/health HTTP/1.1\r\nhost: {listen}\r\nconnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut answer = [0; 1024];
        let count = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(answer.get(..count).unwrap_or_default()).into_owned())
    };
    ask().is_ok_and(|answer| answer.contains("\"version\"") || answer.contains("the token is missing"))
}

/// Says which agents `wrap` would find.
pub(super) fn check_agents() -> DoctorCheck {
    let there = WRAPPED.iter().filter(|agent| programs::find_program(agent.program.as_ref()).is_some());
    let names: Vec<&str> = there.map(|agent| agent.name).collect();
    if names.is_empty() {
        let known: Vec<&str> = WRAPPED.iter().map(|agent| agent.program).collect();
        return DoctorCheck::note(
            "agents",
            format!("none of {} is in the PATH", known.join(", ")),
            "install one, or `trimtab wrap ./my-agent` with any program",
        );
    }
    DoctorCheck::ok(
        "agents",
        format!("{}: `trimtab wrap {}`", names.join(", "), names.first().copied().unwrap_or_default()),
    )
}

/// Counts the sessions that agents keep on this machine.
pub(super) fn count_sessions() -> DoctorCheck {
    let found = discover(&Machine::this(), &AGENTS.iter().collect::<Vec<_>>());
    let of = AGENTS.iter().filter_map(|agent| {
        let own = || found.sessions.iter().filter(|session| session.agent == agent.name);
        let bytes = own().map(|session| session.bytes).sum();
        let count = own().count();
        (count > 0).then(|| format!("{} {count} ({})", agent.title, store::format_size(bytes)))
    });
    let mut each: Vec<String> = of.collect();
    each.extend(found.elsewhere.iter().map(|(elsewhere, _)| elsewhere.remedy.to_owned()));
    if each.is_empty() {
        return DoctorCheck::note(
            "sessions",
            "no session of an agent was found",
            "`trimtab replay PATH` names recordings elsewhere",
        );
    }
    DoctorCheck::ok("sessions", format!("{}: `trimtab replay` measures them", each.join("; ")))
}
