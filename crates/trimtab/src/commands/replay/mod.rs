//! `trimtab replay`: what policies would have cost, saved and missed. Takes recordings or folders of them; gives a table,
//! JSON or a page. Never stops at a file that cannot be replayed: it is named with the reason, and the exit code is 1.

mod groups;
#[cfg(test)]
mod invented;
mod lineup;
mod page;
mod sentence;
mod table;
mod title;
mod work;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use trimtab_core::{Model, keep_alive::PauseTable};
use trimtab_replay::{Contender, ReplayBudget, ReplayTerms, ScoreRow, SessionScores, pool_sessions};

use crate::{
    args::ReplayArgs,
    input::{ENDINGS, Unreadable, files_of},
    output::{Output, check_writable, count_with_noun, print_line, print_note, wrapped_at, write_whole},
    own_sessions::own_sessions,
    prices, store,
};

use self::{
    groups::{RowGroup, group_rows},
    work::{PaidModel, ReplayPrices},
};

/// Whose prices are paid where a session names no model that is known.
const DEFAULT_MODEL: &str = "claude-opus-5";

/// The name of the model where sessions were recorded with several.
const RECORDED: &str = "recorded";

/// The most columns of the sentences at the end.
const SENTENCE_WIDTH: usize = 100;

/// Who took part, as reports name it.
struct Entrant {
    name: String,
    family: &'static str,
    /// What it does, in a sentence.
    about: String,
}

/// What came of all files.
struct ReplayResults {
    entrants: Vec<Entrant>,
    models: Vec<Model>,
    /// The budgets that were asked for, as people write them; one that is none where nothing was asked for.
    budgets: Vec<Option<String>>,
    sessions: Vec<SessionScores>,
    rows: Vec<ScoreRow>,
    /// The rows of each group, where groups were asked for.
    groups: Vec<RowGroup>,
    /// Files that could not be replayed.
    unusable: usize,
    /// Whose prices were paid, for people: `the prices of claude-opus-5`.
    prices: String,
}

pub(crate) fn run(asked: &ReplayArgs, out: &mut Output) -> Result<()> {
    let began = Instant::now();
    let contenders = lineup::contenders_for(asked)?;
    if let Some(file) = &asked.html {
        check_writable(file)?;
    }
    let models = asked_models(asked);
    let default_model = prices::find_model(DEFAULT_MODEL)?;
    let prices =
        if models.is_empty() { ReplayPrices::Recorded(&default_model) } else { ReplayPrices::Of(&models) };
    if models.iter().any(|model| model.cache.slots.is_some()) && models.len() > 1 {
        bail!(
            "seconds and dollars are not compared: name one local model with --model, or models of providers"
        );
    }
    let (files, mut unusable) = asked_files(asked)?;
    let task = work::ReplayTask {
        contenders: &contenders,
        prices,
        terms: ReplayTerms {
            budgets: asked_budgets(asked),
            clock: since_start,
            kept: asked.cache.into(),
            pauses: asked_pauses(asked)?,
            ..ReplayTerms::default()
        },
        columns: models.len().max(1) * asked.budgets.len().max(1),
        details: if asked.html.is_some() { work::ReplayDetails::Kept } else { work::ReplayDetails::Dropped },
    };
    let (replayed, failed) = work::replay_all(&files, &task, job_count(asked));
    let (mut sessions, mut paid, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for session in replayed {
        sessions.push(session.scores);
        paid.extend(session.paid);
        times.push(session.took);
    }
    unusable.extend(failed);
    unusable.iter().for_each(|bad| print_note(format_args!("{}: {}", bad.path, bad.reason)));
    if sessions.is_empty() {
        bail!(explain_no_results(asked, unusable.len()));
    }
    let (models, prices) = if models.is_empty() {
        recorded_models(&paid, &mut sessions, &default_model)
    } else {
        let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
        (models, format!("the prices of {}", names.first().cloned().unwrap_or_default()))
    };
    let resamples = usize::from(asked.resamples);
    let rows = pool_sessions(&sessions, resamples);
    let groups = asked.by.map(|by| group_rows(&sessions, by, resamples)).unwrap_or_default();
    let entrants = contenders.iter().map(Entrant::from_contender).collect();
    let mut budgets: Vec<Option<String>> =
        asked_budgets(asked).iter().map(|budget| Some(budget.to_string())).collect();
    if budgets.is_empty() {
        budgets.push(None);
    }
    let unusable = unusable.len();
    let mut replayed = ReplayResults { entrants, models, budgets, sessions, rows, groups, unusable, prices };
    if lineup::is_usual(asked) {
        lineup::keep_best(&mut replayed);
    }
    write_results(asked, &replayed, out)?;
    out.flush()?;
    if asked.timing {
        say_timing(began.elapsed(), times, job_count(asked));
    }
    if replayed.unusable > 0 {
        let all = replayed.unusable + replayed.sessions.len();
        bail!(
            "{} of {} could not be replayed; the report is of the others",
            replayed.unusable,
            count_with_noun(all, "file", "files")
        );
    }
    Ok(())
}

impl Entrant {
    fn from_contender(contender: &Contender) -> Entrant {
        Entrant {
            name: contender.name().to_owned(),
            family: contender.family().name(),
            about: contender.about().to_owned(),
        }
    }
}

fn write_results(asked: &ReplayArgs, replayed: &ReplayResults, out: &mut Output) -> Result<()> {
    if asked.json {
        let of_groups = replayed.groups.iter().flat_map(|group| &group.rows);
        out.write_json(&replayed.rows.iter().chain(of_groups).collect::<Vec<_>>())?;
        out.flush()?;
    } else if asked.html.is_none() {
        table::print_table(replayed, out)?;
        out.write_line("")?;
    }
    let width = out.width().min(SENTENCE_WIDTH);
    for sentence in sentence::summary_sentences(replayed) {
        for line in wrapped_at(&sentence, width) {
            if asked.json { print_line(line) } else { out.write_line(line)? }
        }
    }
    if let Some(file) = &asked.html {
        let page = page::write_page(replayed);
        write_whole(file, &page)?;
        out.flush()?;
        let size = store::format_size(u64::try_from(page.len()).unwrap_or(u64::MAX));
        print_note(format_args!("{} written ({size})", file.display()));
    }
    Ok(())
}

/// Names the models whose prices were paid, and says so where another had to stand in.
fn recorded_models(
    paid: &[PaidModel],
    sessions: &mut [SessionScores],
    default: &Model,
) -> (Vec<Model>, String) {
    let mut requests: BTreeMap<&str, (usize, &Model)> = BTreeMap::new();
    for paid in paid {
        requests.entry(&paid.model.name).or_insert((0, &paid.model)).0 += paid.requests;
    }
    let unknown: usize = paid.iter().filter(|paid| !paid.is_recorded).map(|paid| paid.requests).sum();
    if unknown > 0 {
        print_note(format_args!(
            "{} no model that is known: the prices of {} are used (--model NAME names another)",
            count_with_noun(unknown, "request names", "requests name"),
            default.name
        ));
    }
    let mut used: Vec<(usize, &Model)> = requests.into_values().collect();
    used.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.name.cmp(&other.1.name)));
    if let [(_, only)] = used.as_slice() {
        let name: Arc<str> = only.name.as_str().into();
        let scores = sessions.iter_mut().flat_map(|session| &mut session.scores);
        scores.for_each(|score| score.model = Arc::clone(&name));
        return (vec![(*only).clone()], format!("the prices of {}", only.name));
    }
    let most = used.first().map_or(default, |(_, model)| model);
    let names: Vec<&str> = used.iter().take(3).map(|(_, model)| model.name.as_str()).collect();
    let more = if used.len() > names.len() { ", …" } else { "" };
    let model = Model { name: RECORDED.to_owned(), ..most.clone() };
    (vec![model], format!("the recorded models' prices ({}{more})", names.join(", ")))
}

/// Returns the models that are named, each once.
fn asked_models(asked: &ReplayArgs) -> Vec<Model> {
    let mut models = asked.models.clone();
    let mut names = Vec::new();
    models.retain(|model| {
        let new = !names.contains(&model.name);
        names.push(model.name.clone());
        new
    });
    models
}

/// Returns the budgets that are asked for, each once.
fn asked_budgets(asked: &ReplayArgs) -> Vec<ReplayBudget> {
    let mut budgets: Vec<ReplayBudget> = Vec::new();
    for budget in &asked.budgets {
        if !budgets.contains(budget) {
            budgets.push(*budget);
        }
    }
    budgets
}

/// Returns the table by which pings are planned, where one is named.
fn asked_pauses(asked: &ReplayArgs) -> Result<Option<Arc<PauseTable>>> {
    let Some(file) = &asked.pauses else { return Ok(None) };
    let tsv = fs::read_to_string(file).with_context(|| format!("{}: cannot be read", file.display()))?;
    match PauseTable::read(&tsv) {
        Ok(table) => Ok(Some(Arc::new(table))),
        Err(reason) => bail!("{}: {reason}", file.display()),
    }
}

/// Returns the files to replay, each once, and the folders that cannot be listed.
fn asked_files(asked: &ReplayArgs) -> Result<(Vec<PathBuf>, Vec<Unreadable>)> {
    let (mut files, mut unusable) = (Vec::new(), Vec::new());
    if asked.paths.is_empty() {
        files = own_sessions(&asked.finding, "replay")?;
    }
    asked.paths.iter().for_each(|path| files_of(path, &mut files, &mut unusable));
    let wanted = asked.session.as_deref().unwrap_or_default();
    files.retain(|file| file.to_string_lossy().contains(wanted));
    files.sort();
    files.dedup();
    Ok((files, unusable))
}

fn explain_no_results(asked: &ReplayArgs, unusable: usize) -> String {
    if unusable > 0 {
        return "nothing could be replayed; the reasons are above".to_owned();
    }
    let endings = ENDINGS.join(", .");
    match &asked.session {
        Some(text) => format!("no recording whose path contains {text:?} was found (.{endings})"),
        None => format!("no recording found: a folder is searched for names ending in .{endings}"),
    }
}

fn job_count(asked: &ReplayArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.jobs.map_or_else(cores, usize::from)
}

/// Returns what a rewritten token costs more than a read one, in reads.
fn rewrite_cost_in_reads(model: &Model) -> f64 {
    (model.prices.cache_write - model.prices.cache_read) / model.prices.cache_read.max(f64::MIN_POSITIVE)
}

/// Tells the time since some moment before the first replay.
fn since_start() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

fn say_timing(took: Duration, mut times: Vec<Duration>, jobs: usize) {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let longest = times.last().copied().unwrap_or_default();
    let memory =
        peak_memory().map_or_else(String::new, |megabytes| format!(", {megabytes} MB of memory at most"));
    print_note(format_args!(
        "sessions: {}; {:.1} s in all, {jobs} at a time; {:.3} s each (median), {:.3} s the longest{memory}",
        times.len(),
        took.as_secs_f64(),
        median.as_secs_f64(),
        longest.as_secs_f64()
    ));
}

/// Returns the most memory that this process had, in megabytes, where the system reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}
