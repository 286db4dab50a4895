//! `trimtab policies`: what ships. Takes a name or nothing; gives the policy's file, or a line for each.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    Policy,
    digest::digests,
    policy::{find_knob, policies, shared_steps},
};
use trimtab_replay::{ContenderFamily, KnobRange, contenders};

use crate::{
    args::PoliciesArgs,
    output::{Output, on_one_line, print_note, wrapped_at},
    settings::DEFAULT_POLICY,
};

/// Columns of the names.
const NAME_WIDTH: usize = 11;

const BOLD: Style = Style::new().bold();

#[derive(Serialize)]
struct PolicyListRow {
    name: String,
    about: String,
    settings: Vec<(String, f64)>,
}

pub(crate) fn run(asked: &PoliciesArgs, out: &mut Output) -> Result<()> {
    if let Some(name) = &asked.name {
        Policy::find_shipped(name)?;
        let found = policies().find(|(shipped, _)| shipped == name);
        return out.write_bytes(found.map_or("", |(_, toml)| toml).as_bytes());
    }
    if asked.peers {
        return peers(asked, out);
    }
    let mut rows = Vec::new();
    for (name, _) in policies() {
        let policy = Policy::find_shipped(name)?;
        rows.push(PolicyListRow { name: policy.name, about: policy.about, settings: policy.settings });
    }
    if asked.json {
        return out.write_json(&rows);
    }
    // The default first, then its neighbours.
    rows.sort_by_key(|row| !row.name.starts_with(DEFAULT_POLICY));
    let width = out.width();
    for row in rows {
        let default = if row.name == DEFAULT_POLICY { "(default) " } else { "" };
        let about = format!("{default}{}", row.about);
        let mut lines = wrapped_at(&about, width.saturating_sub(NAME_WIDTH + 1)).into_iter();
        let first = lines.next().unwrap_or_default();
        out.write_line(format_args!("{BOLD}{:NAME_WIDTH$}{BOLD:#} {first}", row.name))?;
        lines.try_for_each(|line| out.write_line(format_args!("{:NAME_WIDTH$} {line}", "")))?;
        if !asked.settings {
            continue;
        }
        for (setting, value) in row.settings {
            let value =
                find_knob(&setting).map_or_else(|| value.to_string(), |knob| knob.format_value(value));
            out.write_line(format_args!("{:14}{setting} = {value}", ""))?;
        }
    }
    if !asked.settings {
        out.flush()?;
        print_note(
            "`trimtab policies NAME` prints one, --settings lists all settings, --peers the methods of other tools",
        );
        return Ok(());
    }
    out.write_line("")?;
    let shared: Vec<&str> = shared_steps().map(|(name, _)| name).collect();
    out.write_line(format_args!("Steps that a policy may include: {}", shared.join(", ")))?;
    let names: Vec<&str> = digests().map(|(name, _)| name).collect();
    out.write_line(format_args!("Digests that a policy may name: {}", names.join(", ")))
}

/// Lists the methods of other tools.
fn peers(asked: &PoliciesArgs, out: &mut Output) -> Result<()> {
    let others = contenders(KnobRange::Default)
        .into_iter()
        .filter(|contender| contender.family() != ContenderFamily::Policy);
    let rows: Vec<PolicyListRow> = others
        .map(|contender| PolicyListRow {
            name: contender.name().to_owned(),
            about: contender.about().to_owned(),
            settings: contender
                .knob()
                .map(|(meaning, value)| (meaning.to_owned(), value))
                .into_iter()
                .collect(),
        })
        .collect();
    if asked.json {
        return out.write_json(&rows);
    }
    let longest = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let width = out.width().saturating_sub(longest + 1);
    rows.iter().try_for_each(|row| {
        out.write_line(format_args!("{BOLD}{:longest$}{BOLD:#} {}", row.name, on_one_line(&row.about, width)))
    })
}
