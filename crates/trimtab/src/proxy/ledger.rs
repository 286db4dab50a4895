//! What is learnt from an answer. Takes what was sent and what the provider reports; gives figures to the metrics and the
//! count's correction to the session. Never waits: it runs when the last byte has gone to the client.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use trimtab_core::{Model, Tokens};

use super::{
    Proxy,
    metrics::Metric,
    money::{self, Untouched, float},
    prepared::{About, How},
    route::Endpoint,
    tap::End,
    usage::Reading,
};

/// A request that was sent and not yet settled.
pub(crate) struct Account {
    sent: Option<Sent>,
    /// The request counts as under way until its answer has ended.
    _permit: OwnedSemaphorePermit,
}

struct Sent {
    proxy: Arc<Proxy>,
    about: Option<About>,
    how: How,
    good: bool,
}

impl Account {
    /// Opens the account of a conversation's request.
    pub(crate) fn of(
        proxy: &Arc<Proxy>,
        endpoint: Endpoint,
        about: Option<About>,
        how: How,
        status: StatusCode,
        permit: OwnedSemaphorePermit,
    ) -> Account {
        let answered = matches!(endpoint, Endpoint::Answer(_));
        let sent = answered.then(|| Sent { proxy: Arc::clone(proxy), about, how, good: status.is_success() });
        Account { sent, _permit: permit }
    }

    /// Opens the account of a request about whose answer nothing is asked.
    pub(crate) fn unread(permit: OwnedSemaphorePermit) -> Account {
        Account { sent: None, _permit: permit }
    }
}

/// Settles an account when the answer has ended.
pub(crate) fn settle(account: Account, end: End, reading: Option<Reading>) {
    let Some(Sent { proxy, about, how, good }) = account.sent else { return };
    let metrics = &proxy.metrics;
    if end == End::Broken {
        metrics.count(Metric::Left);
    }
    let reading = reading.unwrap_or_default();
    if reading.too_long && good {
        metrics.count(Metric::Overflows { result: "in the answer" });
    }
    if let Some(about) = about.as_ref().filter(|_| good) {
        count_tokens(&proxy, about, how);
        if !reading.too_long {
            about.session.learn_accepted(&about.model_name, really_sent(about, how));
        }
    }
    let Some(usage) = reading.usage else {
        if good && end == End::Whole {
            metrics.count(Metric::Unreported);
        }
        return;
    };
    metrics.usage(usage);
    let Some(about) = about else { return };
    proxy.planner.sessions.answered(&about.session, about.kept_as, really_sent(&about, how), usage);
    let Some(model) = &about.model else { return };
    metrics.add(Metric::Spent, money::spent(model, usage));
    if how != How::Observed && end == End::Whole {
        metrics.add(Metric::Saved, saved(model, &about, usage));
    }
}

fn really_sent(about: &About, how: How) -> Tokens {
    if how == How::Observed { about.raw } else { about.sent }
}

fn saved(model: &Model, about: &About, usage: trimtab_core::Usage) -> f64 {
    if about.raw == about.sent {
        return 0.0;
    }
    money::saved(model, usage, Untouched { raw: about.raw, sent: about.sent, known: about.known })
}

fn count_tokens(proxy: &Proxy, about: &About, how: How) {
    let metrics = &proxy.metrics;
    let hidden = float(about.raw.0) - float(about.sent.0);
    metrics.add(Metric::CountedTokens { which: "raw" }, float(about.raw.0));
    if how == How::Observed {
        metrics.add(Metric::CountedTokens { which: "sent" }, float(about.raw.0));
        metrics.add(Metric::WouldHide, hidden);
        return;
    }
    metrics.add(Metric::CountedTokens { which: "sent" }, float(about.sent.0));
    let blocks = |count: usize| float(u64::try_from(count).unwrap_or(u64::MAX));
    metrics.add(Metric::HiddenBlocks { verdict: "shorten" }, blocks(about.shortened));
    metrics.add(Metric::HiddenBlocks { verdict: "drop" }, blocks(about.dropped));
}
