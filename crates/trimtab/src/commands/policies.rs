//! `trimtab policies`: what ships. Takes a name or nothing; gives the policy's file, or a line for each.

use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    Policy,
    digest::digests,
    policy::{find_knob, policies, shared_steps},
};

use crate::{args::Policies, output::Output};

#[derive(Serialize)]
struct Row {
    name: String,
    about: String,
    settings: Vec<(String, f64)>,
}

pub(crate) fn run(asked: &Policies, out: &mut Output) -> Result<()> {
    if let Some(name) = &asked.name {
        Policy::shipped(name)?;
        let found = policies().find(|(shipped, _)| shipped == name);
        return out.bytes(found.map_or("", |(_, toml)| toml).as_bytes());
    }
    let mut rows = Vec::new();
    for (name, _) in policies() {
        let policy = Policy::shipped(name)?;
        rows.push(Row { name: policy.name, about: policy.about, settings: policy.settings });
    }
    if asked.json {
        return out.json(&rows);
    }
    for row in rows {
        out.line(format_args!("{:10} {}", row.name, row.about))?;
        for (setting, value) in row.settings {
            let value = find_knob(&setting).map_or_else(|| value.to_string(), |knob| knob.write(value));
            out.line(format_args!("{:12}{setting} = {value}", ""))?;
        }
    }
    out.line("")?;
    let shared: Vec<&str> = shared_steps().map(|(name, _)| name).collect();
    out.line(format_args!("Steps that a policy may include: {}", shared.join(", ")))?;
    let names: Vec<&str> = digests().map(|(name, _)| name).collect();
    out.line(format_args!("Digests that a policy may name: {}", names.join(", ")))
}
