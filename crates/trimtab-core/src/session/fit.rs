//! The whole line in one call: a request in, the request to send out. Takes the request, the memory of what was sent, the
//! settings and the time; gives the fitted bytes with their plan. Never does I/O: who forwards the request tells the memory.

use std::{borrow::Cow, sync::Arc};

use crate::{
    count::{Calibration, Counter, Exactness},
    history::{Block, BlockKind, Blocks, Format, History},
    memory::Memory,
    plan::{
        BlockWishes, CachePrices, CacheState, Plan, PlanContext, PlanError, RequestView, SentBefore,
        ShowingCost, TextCache, Units, plan, plan_edits,
    },
    policy::{Folding, Markers, Policy},
    prices::{CacheRules, Model},
    render::RecallHint,
    session::WarmState,
    summary::SummaryTask,
    units::{Millis, Tokens},
    verdict::SentVerdict,
    wire::{WireError, write},
};

/// How long a provider keeps its cache after a request began, where nothing better is known: five minutes.
const CACHE_LIFETIME: i64 = 5 * 60 * 1000;

/// What part of a lifetime a cache may live beyond it. Clocks differ, and agents send requests on the side that keep it alive:
/// of eight recorded pauses of 1.00 to 1.13 lifetimes five found it alive, of 30 of up to three lifetimes none found it whole.
const SLACK: i64 = 5;

/// What a fit is made with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What may be hidden, and when.
    pub policy: Arc<Policy>,
    /// The most that the request may count, in the provider's tokens; if there is none, the window's size less the answer.
    pub budget: Option<Tokens>,
    /// The most that it may count beside that, in tokens as they are counted here.
    pub at_most: Option<Tokens>,
    /// How the provider was seen to count.
    pub calibration: Calibration,
    /// The model to count and pay for; the one that the request names, where there is none.
    pub model: Option<String>,
    /// The request's format; if there is none, the request shows it.
    pub format: Option<Format>,
    /// The prices and the window to decide by; those of `model`, where there are none.
    pub prices: Option<Model>,
    /// Whether cache markers may be added.
    pub markers: Markers,
    /// How long the provider is asked to keep its cache; as the request says, where there is nothing.
    pub keeping: Option<CacheLifetime>,
    /// Tokens that are paid with every request and do not stand in it: what a recording leaves out of its head. They count
    /// in the sums by which edits must pay, not in the budget.
    pub unseen: Tokens,
    /// What becomes of a policy's steps that fold.
    pub folding: Folding,
    /// What is known of the provider's cache beside what memory holds.
    pub cache: CacheHint,
    /// How notes say that what is hidden comes back.
    pub recall: RecallHint,
}

/// What is known of the provider's cache beside what memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheHint {
    /// Nothing: memory and the time since the last request tell. A conversation that memory knows nothing of is taken as sent whole
    /// up to the model's last answer, so that a cache which may hold it is not broken in ignorance.
    #[default]
    Unknown,
    /// It holds nothing of this conversation.
    Cold,
}

/// How long a provider is asked to keep what it cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheLifetime {
    /// As long as it does by itself.
    #[default]
    Usual,
    /// For an hour, which costs more to write.
    Hour,
}

impl Settings {
    /// Returns settings that know nothing but the policy: the request says the rest.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Settings {
        Settings {
            policy: policy.into(),
            budget: None,
            at_most: None,
            calibration: Calibration::default(),
            model: None,
            format: None,
            prices: None,
            markers: Markers::AsTheyCame,
            keeping: None,
            unseen: Tokens::ZERO,
            folding: Folding::WhenGiven,
            cache: CacheHint::Unknown,
            recall: RecallHint::default(),
        }
    }

    /// Says that the provider's cache holds nothing of the conversation.
    #[must_use]
    pub fn with_cold_cache(mut self) -> Settings {
        self.cache = CacheHint::Cold;
        self
    }

    /// Sets what is known of the provider's cache.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheHint) -> Settings {
        self.cache = cache;
        self
    }

    /// Sets the most that the request may count.
    #[must_use]
    pub fn with_budget(mut self, budget: impl Into<Option<Tokens>>) -> Settings {
        self.budget = budget.into();
        self
    }

    /// Sets the prices and the window to decide by.
    #[must_use]
    pub fn with_prices(mut self, prices: impl Into<Option<Model>>) -> Settings {
        self.prices = prices.into();
        self
    }

    /// Says what becomes of a policy's steps that fold.
    #[must_use]
    pub fn with_folding(mut self, folding: Folding) -> Settings {
        self.folding = folding;
        self
    }

    /// Says whether cache markers may be added.
    #[must_use]
    pub fn with_markers(mut self, markers: Markers) -> Settings {
        self.markers = markers;
        self
    }

    /// Says how notes tell that what is hidden comes back.
    #[must_use]
    pub fn with_recall(mut self, recall: RecallHint) -> Settings {
        self.recall = recall;
        self
    }

    /// Sets the model to count and pay for.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Settings {
        self.model = Some(model.into());
        self
    }

    /// Sets the request's format.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Settings {
        self.format = Some(format);
        self
    }
}

/// A request that was fitted.
#[derive(Debug, Clone)]
pub struct FittedRequest {
    /// The bytes to send.
    pub request: Vec<u8>,
    /// The client's request.
    pub history: Arc<History>,
    /// What became of every block.
    pub plan: Plan,
    /// The budget that was kept to.
    pub budget: Option<Tokens>,
    /// Whether counts are exact.
    pub exactness: Exactness,
    /// The time that it was fitted for.
    pub at: Millis,
    counter: Counter,
}

impl FittedRequest {
    /// Makes ready to ask for the summary that the plan wants.
    pub fn summary_task(&self) -> Option<SummaryTask> {
        let wanted = self.plan.fold_request()?.clone();
        Some(SummaryTask::new(Arc::clone(&self.history), wanted, self.counter))
    }
}

/// A request that was planned for.
#[derive(Debug, Clone)]
pub struct PlannedFit {
    /// The client's request.
    pub history: Arc<History>,
    /// What becomes of every block.
    pub plan: Plan,
    /// The budget that was kept to.
    pub budget: Option<Tokens>,
    /// Whether counts are exact.
    pub exactness: Exactness,
    counter: Counter,
}

impl PlannedFit {
    /// Returns what counted.
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// Makes ready to ask for the summary that the plan wants.
    pub fn summary_task(&self) -> Option<SummaryTask> {
        let wanted = self.plan.fold_request()?.clone();
        Some(SummaryTask::new(Arc::clone(&self.history), wanted, self.counter))
    }

    /// Writes the bytes to send; nothing if the request is sent unchanged.
    pub fn write_request(&self) -> Option<Vec<u8>> {
        write_plan(&self.history, &self.plan, &mut TextCache::default())
    }

    /// Writes the same bytes sooner: what was written for earlier requests of the conversation is copied.
    pub fn write_warm(&self, warm: &mut WarmState) -> Option<Vec<u8>> {
        write_plan(&self.history, &self.plan, &mut warm.made)
    }
}

/// A request that could not be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// It could not be read.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The plan would have broken the protocol: nothing is sent.
    #[error("the plan is not allowed: {0}")]
    Plan(#[from] PlanError),
}

/// Fits a request into its budget.
///
/// ```
/// use trimtab_core::{Memory, Millis, Policy, Settings, Tokens, fit};
///
/// let request = br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
/// let settings = Settings::new(Policy::find_shipped("ladder")?).with_budget(Tokens(1000));
/// let mut memory = Memory::default();
/// let fitted = fit(request.clone(), &memory, &settings, Millis(0))?;
/// assert_eq!(fitted.request, request);
/// memory.remember_sent(&fitted.plan, Millis(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Says what is wrong where the bytes are not a request.
pub fn fit(
    request: Vec<u8>,
    memory: &Memory,
    settings: &Settings,
    now: Millis,
) -> Result<FittedRequest, FitError> {
    fit_warm(request, &mut WarmState::default(), memory, settings, now)
}

/// Fits a request of a conversation whose earlier requests are still warm: the same bytes as [`fit`], sooner.
///
/// # Errors
/// As [`fit`].
pub fn fit_warm(
    request: impl Into<Arc<Vec<u8>>>,
    warm: &mut WarmState,
    memory: &Memory,
    settings: &Settings,
    now: Millis,
) -> Result<FittedRequest, FitError> {
    let history = warm.read(request, settings.format)?;
    let model = settings.model.clone().or_else(|| history.model().map(Cow::into_owned)).unwrap_or_default();
    warm.follow_request(&history, &model);
    let PlannedFit { history, plan, budget, exactness, counter } = plan_latest(warm, memory, settings, now)?;
    let request = write_plan(&history, &plan, &mut warm.made).unwrap_or_else(|| history.bytes().to_vec());
    Ok(FittedRequest { request, history, plan, budget, exactness, at: now, counter })
}

/// Plans for the latest request of a conversation, without writing what is to be sent.
///
/// # Errors
/// Says what the plan would have broken. A conversation without a latest request is not one.
pub fn plan_latest(
    warm: &mut WarmState,
    memory: &Memory,
    settings: &Settings,
    now: Millis,
) -> Result<PlannedFit, FitError> {
    let (Some(history), Some(counter)) = (warm.latest.clone(), warm.counter) else {
        return Err(FitError::Wire(WireError::NotAConversation));
    };
    let exactness = counter.tokenizer().exactness();
    let known = model_in_force(settings, &history, warm);
    let window = || known.as_ref().map(|model| model.request_budget(history.requested_output()));
    let allowed = settings.budget.or_else(window).map(|budget| settings.calibration.budget_here(budget));
    let asked = [allowed, settings.at_most].into_iter().flatten().min();
    // Where the count is an estimate, the budget is kept with room for its error.
    let budget = asked.map(|budget| budget.scale(1.0 / exactness.guard()));
    let rules = known.as_ref().map(|model| model.cache);
    let keeping = settings.keeping.unwrap_or_else(|| asked_keeping(&history));
    let lifetime = match keeping {
        CacheLifetime::Usual => rules.map_or(CACHE_LIFETIME, |rules| rules.lifetime_ms),
        CacheLifetime::Hour => CacheRules::HOUR_MS.max(rules.map_or(0, |rules| rules.lifetime_ms)),
    };
    let prices = known.as_ref().map_or(DEFAULT_PRICES, |model| CachePrices {
        read: model.prices.cache_read / model.prices.input,
        write: match keeping {
            CacheLifetime::Usual => model.prices.cache_write,
            CacheLifetime::Hour => model.prices.cache_write_1h.unwrap_or(model.prices.cache_write),
        } / model.prices.input,
    });
    let surely_gone = lifetime + lifetime / SLACK;
    let is_new = memory.is_empty() && settings.cache == CacheHint::Unknown;
    let begun = is_new.then(|| Memory::of_running_conversation(&history, &warm.chain, now));
    let (memory, wishes) = (begun.as_ref().unwrap_or(memory), memory.wishes());
    let gone = || memory.is_empty() || memory.idle_time(now).is_none_or(|idle| idle >= surely_gone);
    let cold = settings.cache == CacheHint::Cold || gone();
    let sent: Blocks<Option<&SentVerdict>> = warm.chain.iter().map(|hash| memory.verdict(*hash)).collect();
    // Only there reasoning comes with a signature over what precedes it.
    let is_signed = history.format() == Format::Anthropic;
    let may_bind = is_signed && rules.is_some_and(|rules| rules.prefix_bound_reasoning);
    let binds_reasoning = may_bind && history.blocks().iter().any(|block| block.kind == BlockKind::Reasoning);
    // An edit makes bound reasoning invalid, so that none is free there.
    let showing = if cold && !binds_reasoning { ShowingCost::Free } else { ShowingCost::Costs };
    let wished =
        BlockWishes::find_blocks(wishes, (&history, &warm.facts), &mut warm.made, sent.as_slice(), showing);
    let units = Units::from_history(&history, &warm.facts);
    let request = RequestView {
        history: &history,
        facts: &warm.facts,
        counts: &warm.counts,
        counter,
        index: &warm.index,
        units: &units,
    };
    let context = PlanContext {
        policy: &settings.policy,
        budget,
        before: SentBefore {
            memory,
            chain: &warm.chain,
            elsewhere: memory.hidden_elsewhere(&history, &warm.chain, sent.as_slice()),
            sent,
            assumed_ends: begun.as_ref().map(Memory::request_ends).unwrap_or_default(),
        },
        cache: CacheState {
            cold,
            long_pause: memory.idle_time(now).is_some_and(|idle| idle >= CacheRules::HOUR_MS),
            cold_from: memory.rewritten_from(&history, &warm.chain),
            first_look: is_new && !memory.is_empty(),
            unseen: settings.unseen,
            alive_after: Millis(now.0.saturating_sub(match keeping {
                CacheLifetime::Usual => lifetime.min(CACHE_LIFETIME),
                CacheLifetime::Hour => lifetime.min(Memory::ENDS_LAST_MS),
            })),
            prices,
            minimum: rules.map_or(Tokens::ZERO, |rules| rules.minimum),
            binds_reasoning,
        },
        markers: settings.markers,
        folding: settings.folding,
        wished,
        recall: &settings.recall,
    };
    let mut planned = plan(request, &context, &mut warm.memo, &mut warm.made)?;
    let freed = planned.cache_break().and_then(|broken| context.wished.freed_from(broken.block));
    if let Some(wished) = freed {
        let freed = plan(request, &PlanContext { wished, ..context }, &mut warm.memo, &mut warm.made)?;
        let first = |plan: &Plan| plan.cache_break().map(|broken| broken.block);
        // With more to show, what paid before may not pay any more: then showing it would not be free either.
        if first(&freed) <= first(&planned) {
            planned = freed;
        }
    }
    Ok(PlannedFit { history, plan: planned, budget: asked, exactness, counter })
}

/// Returns the model whose prices decide: the one of the settings, else the one that the request names.
pub(super) fn model_in_force(settings: &Settings, history: &History, warm: &mut WarmState) -> Option<Model> {
    let named = || history.model().map(Cow::into_owned);
    let name = || settings.model.clone().or_else(named).unwrap_or_default();
    settings.prices.clone().or_else(|| warm.find_model(&name()))
}

/// Writes what a plan sends; nothing if the request is sent unchanged.
fn write_plan(history: &History, plan: &Plan, made: &mut TextCache) -> Option<Vec<u8>> {
    if plan.keeps_all() { None } else { Some(write(history, &plan_edits(history, plan, made))) }
}

/// Tells how long a request asks the provider to keep its cache.
fn asked_keeping(history: &History) -> CacheLifetime {
    let an_hour =
        |block: &Block| memchr::memmem::find(block.span.bytes_in(history.bytes()), br#""1h""#).is_some();
    let asks = history.blocks().iter().any(|block| block.marked && an_hour(block));
    if asks { CacheLifetime::Hour } else { CacheLifetime::Usual }
}

/// What most providers ask: a tenth for reading, a quarter more for writing.
const DEFAULT_PRICES: CachePrices = CachePrices { read: 0.1, write: 1.25 };
