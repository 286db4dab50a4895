//! `trimtab fit`: the request that fits. Takes a request or a recording, a budget and a policy; gives the bytes of one
//! request, in the format it came in. Writes nothing where it cannot be done.

mod picture;

use anyhow::{Context, Result, bail};
use trimtab_core::{
    CacheHint, FittedRequest, Handle, Memory, Millis, RecallHint, Session, SessionAccount, Settings,
    parse_as, recall,
    report::{TightWindow, fit_report},
    wire::repair,
};
use trimtab_store::{
    Append, Appended, NewWish, Recognized, SessionLabel, Sqlite, Store, WishKind, current_project,
    name_from_request, project_named,
};

use crate::{
    accounts::{account_of_points, account_of_requests, describe_account},
    args::FitArgs,
    hint::{HintReader, recall_hint},
    input::{self, Conversation},
    near::did_you_mean,
    output::{self, Output, group_thousands, print_line, print_note},
    prices,
    settings::{CommandLineSettings, SettingsFiles, in_force, warn_of_unknown_variables},
    store,
};

pub(crate) fn run(asked: &FitArgs, out: &mut Output) -> Result<()> {
    warn_of_unknown_variables();
    let conversation = input::read_conversation(&asked.input)?;
    let (request, mended) = request_to_fit(asked, &conversation)?;
    let said_model = || conversation.history.model().map(std::borrow::Cow::into_owned);
    let asked_for = CommandLineSettings {
        policy: asked.policy.as_deref(),
        model: asked.model.as_deref(),
        budget: asked.budget,
        set: &asked.set,
        fold: asked.fold,
        spent: asked.spent.unwrap_or_else(|| account_of_points(&conversation.segment.points).paid_dollars),
        said_model: input::recorded_model(&conversation).or_else(said_model),
    };
    let in_force = in_force(&asked_for, &SettingsFiles::read()?)?;
    let hides = in_force.policy.name != "none";
    let keeps = asked.input.view.store.path.as_deref().filter(|_| !asked.no_store);
    let mut settings = Settings::new(in_force.policy)
        .with_format(conversation.history.format())
        .with_recall(keeps.map_or(RecallHint::Nothing, |store| recall_hint(store, HintReader::Neighbour)))
        .with_prices(in_force.model.as_deref().and_then(|model| prices::find_model(model).ok()))
        .with_budget(in_force.budget)
        .with_folding(in_force.folding)
        .with_cache(if asked.cold { CacheHint::Cold } else { CacheHint::Unknown });
    settings.model = in_force.model;
    let store = match keeps {
        Some(_) => Some(store::open_or_create(&asked.input.view.store)?),
        None => None,
    };
    let mut known = match &store {
        Some(store) => Some(recognize_conversation(store, asked, &request, &conversation)?),
        None => None,
    };
    let now = if store.is_some() { store::current_time() } else { Millis(0) };
    let memory = known.as_ref().map(|known| known.memory.clone()).unwrap_or_default();
    let mut session = Session::new(settings).with_memory(memory);
    let new_pins = pin_blocks(asked, &conversation, session.memory_mut())?;
    let mut fitted = session.fit(request.clone(), now).with_context(|| conversation.name.clone())?;
    if hides && fitted.budget.is_none() {
        bail!("{}: no budget: {}", conversation.name, no_budget(session.settings().model.as_deref()));
    }
    if let Some(file) = &asked.report {
        let report = fit_report(&session.settings().policy, &in_force.rows, &fitted, &mended);
        output::write_whole(file, &serde_json::to_vec_pretty(&report)?)?;
    }
    if let (Some(floor), Some(budget)) = (fitted.plan.floor(), fitted.budget) {
        let made_of: Vec<String> = floor
            .made_of
            .iter()
            .take(4)
            .map(|(class, tokens)| format!("{class} {}", group_thousands(tokens.0)))
            .collect();
        bail!(
            "{}: does not fit into {} tokens: {} cannot be hidden ({}){}; raise the budget to at least {}{}",
            conversation.name,
            group_thousands(budget.0),
            group_thousands(floor.tokens.0),
            made_of.join(", "),
            if fitted.exactness.guard() > 1.0 { ", and the count is an estimate" } else { "" },
            group_thousands(floor.tokens.scale(fitted.exactness.guard()).0 + 1),
            if tight_window(&fitted).is_some() {
                format!(", or {}", TightWindow::REMEDY)
            } else {
                String::new()
            }
        );
    }
    // What is hidden is kept before anything is given away.
    while let (Some(store), Some(known)) = (&store, &mut known) {
        match store.append_request(&Append::new(&fitted.history, &fitted.plan, known, now))? {
            Appended::Stored { session, .. } => {
                for handle in new_pins {
                    let session = Some(session);
                    store.add_wish(&NewWish { session, handle, kind: WishKind::Pin, at: now })?;
                }
                break;
            }
            Appended::SaidBefore { verdicts, seen } => {
                verdicts.into_iter().for_each(|(hash, verdict)| session.memory_mut().remember(hash, verdict));
                known.seen = seen;
                fitted = session.fit(request.clone(), now)?;
            }
        }
    }
    if asked.explain {
        picture::explain_fit(&fitted);
        let account = account_so_far(asked, &conversation, store.as_ref().zip(known.as_ref()))?;
        if let Some(words) = describe_account(&account) {
            print_line(format_args!("the session so far: {words}"));
        }
    }
    print_status(&fitted);
    if let Some(tight) = tight_window(&fitted) {
        print_line(format_args!("{tight}"));
    }
    let fits_whole = fitted.budget.is_some_and(|budget| fitted.plan.before() <= budget);
    if fits_whole && fitted.plan.leaves_cache_alone() {
        print_note(
            "the request fits, so everything up to the model's last answer is sent unchanged: the provider's cache may hold it. \
             --cold treats the cache as expired and hides what is no longer needed",
        );
    }
    out.write_bytes(&fitted.request)?;
    out.flush()?;
    if let Some(store) = &store {
        // What was asked for is done. A store that cannot be tidied now is tidied another time.
        let _ = store.tidy();
    }
    Ok(())
}

/// Returns what the session has cost so far: as it is kept, else as the recording reports it.
fn account_so_far(
    asked: &FitArgs,
    conversation: &Conversation,
    kept: Option<(&Sqlite, &Recognized)>,
) -> Result<SessionAccount> {
    if let Some((store, session)) = kept.and_then(|(store, known)| Some((store, known.session?))) {
        return Ok(account_of_requests(&store.requests(session)?));
    }
    let named = input::stored_account(&asked.input.file, &asked.input.view)?;
    Ok(named.unwrap_or_else(|| account_of_points(&conversation.segment.points)))
}

/// Says why there is no budget, and what to do.
fn no_budget(model: Option<&str>) -> String {
    let Some(name) = model else {
        return "no model is named; give --budget TOKENS or --model NAME".to_owned();
    };
    let names: Vec<&str> = prices::models()
        .map(|models| models.iter().map(|model| model.name.as_str()).collect())
        .unwrap_or_default();
    let near = did_you_mean(name, &names);
    format!(
        "the model {name:?} is not in the table{near}; `trimtab models` lists all; or give --budget TOKENS"
    )
}

/// Pins what was asked for; gives the handles that were not pinned before.
fn pin_blocks(asked: &FitArgs, conversation: &Conversation, memory: &mut Memory) -> Result<Vec<Handle>> {
    let mut new = Vec::new();
    for handle in &asked.pins {
        if recall(&conversation.history, &handle.to_string()).is_none() {
            bail!("{}: no block has the handle {handle}: it cannot be pinned", conversation.name);
        }
        if !memory.wishes().is_pinned(*handle) {
            memory.pin(*handle);
            new.push(*handle);
        }
    }
    Ok(new)
}

/// Looks up what was sent of this conversation before.
fn recognize_conversation(
    store: &Sqlite,
    asked: &FitArgs,
    request: &[u8],
    conversation: &Conversation,
) -> Result<Recognized> {
    let history = parse_as(request.to_vec(), conversation.history.format())?;
    let name = name_from_request(request).or_else(|| conversation.segment.name.clone());
    let project = asked.input.view.project.as_deref().and_then(project_named).or_else(current_project);
    let label = SessionLabel { name: name.as_deref(), project: project.as_deref() };
    Ok(store.recognize(&history, label)?)
}

/// Returns the request that is meant, repaired if that is asked for, with what was repaired.
fn request_to_fit(
    asked: &FitArgs,
    conversation: &Conversation,
) -> Result<(Vec<u8>, Vec<trimtab_core::wire::Repair>)> {
    let request = input::request_bytes(&asked.input, conversation);
    if !asked.repair {
        return Ok((request, Vec::new()));
    }
    let (request, mended) = repair(&parse_as(request, conversation.history.format())?);
    mended.iter().for_each(|mended| print_note(format_args!("{}: {mended}", conversation.name)));
    Ok((request, mended))
}

fn tight_window(fitted: &FittedRequest) -> Option<TightWindow> {
    TightWindow::find(&fitted.history, &fitted.plan, fitted.budget)
}

/// Says how full the window is.
fn print_status(fitted: &FittedRequest) {
    let Some(budget) = fitted.budget else { return };
    let after = fitted.plan.after().0;
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a share for people")]
    let share = after as f64 / budget.0.max(1) as f64 * 100.0;
    print_line(format_args!("[context] {after}/{} tokens ({share:.1}%)", budget.0));
}
