//! `trimtab fit`: the request that fits. Takes a request or a recording, a budget and a policy; gives the bytes of one
//! request, in the format it came in. Writes nothing where it cannot be done.

mod picture;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use trimtab::{Exactness, Fitted, Memory, Millis, Policy, Settings, Tokens, Verdict, fit};

use crate::{
    args::Fit,
    input,
    output::{Output, grouped, say},
};

pub(crate) fn run(asked: &Fit, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let request = input::request(&asked.input, &conversation);
    let policy = policy(asked)?;
    let hides = policy.name != "none";
    let settings = Settings {
        policy,
        budget: asked.budget.map(Tokens),
        model: asked.model.clone().or_else(|| input::recorded_model(&conversation)),
        format: Some(conversation.history.format()),
    };
    let fitted =
        fit(request, &Memory::default(), &settings, Millis(0)).with_context(|| conversation.name.clone())?;
    if hides && fitted.budget.is_none() {
        bail!(
            "{}: no budget: the model is not known; give --budget TOKENS or --model NAME",
            conversation.name
        );
    }
    if let (Some(floor), Some(budget)) = (fitted.plan.floor(), fitted.budget) {
        let made_of: Vec<String> = floor
            .made_of
            .iter()
            .take(4)
            .map(|(class, tokens)| format!("{class} {}", grouped(tokens.0)))
            .collect();
        bail!(
            "{}: does not fit into {} tokens: {} cannot be hidden ({}); raise the budget to at least {}",
            conversation.name,
            grouped(budget.0),
            grouped(floor.tokens.0),
            made_of.join(", "),
            grouped(floor.tokens.scaled(fitted.exactness.guard()).0 + 1)
        );
    }
    if let Some(file) = &asked.report {
        let json = serde_json::to_vec_pretty(&report(&settings.policy, &fitted))?;
        std::fs::write(file, json).with_context(|| format!("{}: cannot be written", file.display()))?;
    }
    if asked.explain {
        picture::explain(&fitted);
        status(&fitted);
    }
    out.bytes(&fitted.request)
}

/// Returns the policy of that name, or in that file, with its settings from the environment and the command line.
fn policy(asked: &Fit) -> Result<Policy> {
    let name = asked.policy.as_str();
    let shipped = trimtab::policies().find(|(shipped, _)| *shipped == name).map(|(_, toml)| toml.to_owned());
    let toml = match shipped {
        Some(toml) => toml,
        None if name.ends_with(".toml") => {
            std::fs::read_to_string(name).with_context(|| format!("{name}: the policy cannot be read"))?
        }
        None => return Ok(Policy::shipped(name)?),
    };
    let plain = Policy::from_toml(name, &toml, &[])?;
    let mut changed: Vec<(String, f64)> = Vec::new();
    for (setting, _) in &plain.settings {
        let variable = format!("TRIMTAB_{}", setting.to_uppercase());
        let Ok(value) = std::env::var(&variable) else { continue };
        changed.push((setting.clone(), number(&value).with_context(|| format!("{variable}={value}"))?));
    }
    for words in &asked.set {
        let (setting, value) =
            words.split_once('=').with_context(|| format!("--set {words}: expected NAME=VALUE"))?;
        changed.push((setting.to_owned(), number(value).with_context(|| format!("--set {words}"))?));
    }
    Ok(Policy::from_toml(name, &toml, &changed)?)
}

/// Reads a setting: a number, or true and false.
fn number(value: &str) -> Result<f64> {
    match value {
        "true" => Ok(1.0),
        "false" => Ok(0.0),
        _ => value.parse().context("expected a number, true or false"),
    }
}

/// Says how full the window is.
fn status(fitted: &Fitted) {
    let Some(budget) = fitted.budget else { return };
    let after = fitted.plan.after().0;
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a share for people")]
    let share = after as f64 / budget.0.max(1) as f64 * 100.0;
    say(format_args!("[context] {after}/{} tokens ({share:.1}%)", budget.0));
}

#[derive(Serialize)]
struct Report<'a> {
    policy: &'a str,
    budget: Option<Tokens>,
    exact: bool,
    tokens_before: Tokens,
    tokens_after: Tokens,
    fold_wanted: bool,
    verdicts: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    block: u32,
    verdict: String,
    reason: String,
    saved: Tokens,
    handle: Option<String>,
}

fn report<'a>(policy: &'a Policy, fitted: &Fitted) -> Report<'a> {
    let plan = &fitted.plan;
    let hidden = plan.decisions().iter().filter(|decision| decision.verdict != Verdict::Keep);
    let rows = hidden.map(|decision| Row {
        block: decision.block.0,
        verdict: decision.verdict.to_string(),
        reason: decision.reason.as_ref().map(ToString::to_string).unwrap_or_default(),
        saved: plan.saved(decision.block),
        handle: decision.handle.clone(),
    });
    Report {
        policy: &policy.name,
        budget: fitted.budget,
        exact: fitted.exactness == Exactness::Exact,
        tokens_before: plan.before(),
        tokens_after: plan.after(),
        fold_wanted: plan.fold_wanted(),
        verdicts: rows.collect(),
    }
}
