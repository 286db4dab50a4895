//! The commands as the help lists them: grouped by what one wants to do ([`GROUPS`]), with three to begin with. Takes the commands as
//! they are declared; gives the program's [`Command`] with that help.

use std::{fmt::Write, sync::LazyLock};

use clap::{Command, CommandFactory};

use super::Args;

/// What to begin with.
const FIRST: &[(&str, &str)] = &[
    ("trimtab demo", "watch it work on a recorded session: no key, no network"),
    ("trimtab replay", "see what it would have saved in your own sessions"),
    ("trimtab wrap claude", "use it: run an agent with its requests trimmed"),
];

/// The commands, by what one wants to do.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["wrap", "proxy", "mcp", "fit", "compact"]),
    ("Measure", &["demo", "replay", "policies", "models"]),
    ("Look", &["page", "inspect", "why", "show", "files", "file-at", "changelog"]),
    (
        "Stored sessions",
        &["sessions", "search", "recall", "pin", "unpin", "undo", "restore", "stats", "backup", "forget"],
    ),
    ("This installation", &["doctor", "completions", "man"]),
];

/// Columns of the names.
const NAME_WIDTH: usize = 22;

/// The version with what else a report of a fault needs.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    format!(
        "{}\nprices of {}\n{system} {machine}",
        env!("CARGO_PKG_VERSION"),
        trimtab_core::prices::prices_date()
    )
});

/// Returns the program's commands with the grouped help.
pub(crate) fn command() -> Command {
    let command = Args::command();
    // As clap writes its own headings and names.
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut help = format!("{{about}}\n\n{header}Start here:{header:#}\n");
    for (line, about) in FIRST {
        let _ = writeln!(help, "  {literal}{line:NAME_WIDTH$}{literal:#}{about}");
    }
    help += "\n{usage-heading} {usage}\n";
    for (title, names) in GROUPS {
        let _ = write!(help, "\n{header}{title}:{header:#}\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(help, "  {literal}{name:NAME_WIDTH$}{literal:#}{about}");
        }
    }
    let _ = write!(help, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(help).long_version(LONG_VERSION.as_str())
}

/// Tells whether the help lists a command.
#[cfg(test)]
fn is_grouped(name: &str) -> bool {
    GROUPS.iter().filter(|(_, names)| names.contains(&name)).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_every_group_has_commands_only() {
        let declared = Args::command();
        let names: Vec<&str> = declared.get_subcommands().map(Command::get_name).collect();
        assert!(names.iter().all(|name| is_grouped(name)), "{names:?}");
        let grouped: Vec<&&str> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
        assert_eq!(grouped.len(), names.len());
        let begins = |line: &str| line.split(' ').nth(1).is_some_and(|name| names.contains(&name));
        assert!(FIRST.iter().all(|(line, _)| begins(line)));
    }

    #[test]
    fn the_help_fits_80_columns() {
        let help = command().render_help().to_string();
        let ours = help.lines().take_while(|line| *line != "Options:");
        let long: Vec<&str> = ours.filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:?}");
    }
}
