//! What is known of a session between its requests. The proxy holds one for every session, [`Session`](super::Session) its own.

use std::sync::Arc;

use crate::{
    account::{AccountedRequest, SessionAccount},
    count::Calibration,
    memory::Memory,
    prices::Model,
    units::{Millis, Tokens},
    usage::Usage,
};

/// What was sent in a session, and what the provider's answers taught.
#[derive(Debug, Clone, Default)]
pub struct SessionState {
    /// What was sent.
    pub memory: Arc<Memory>,
    /// How the provider counts, beside how we do.
    pub calibration: Calibration,
    /// What the session has cost so far, and what it would have cost untouched.
    pub account: SessionAccount,
}

impl SessionState {
    /// Learns from what the provider reported for a request, and enters it in the account. Returns the dollars that were saved by it;
    /// below zero where it cost more than untouched.
    pub fn learn_usage(&mut self, model: Option<&Model>, request: AccountedRequest, usage: Usage) -> f64 {
        self.learn_counts(request.sent, usage);
        self.account.enter_request(model, request, usage)
    }

    /// Enters a ping in the account, and notes whether the provider's cache still had the conversation. Returns whether it had.
    pub fn learn_ping(&mut self, model: &Model, at: Millis, usage: Usage) -> bool {
        self.account.enter_ping(model, usage);
        let was_alive = usage.cache_read.saturating_mul(2) >= usage.total_input();
        let memory = Arc::make_mut(&mut self.memory);
        if !was_alive {
            memory.cache_was_lost();
        }
        memory.cache_was_read(at);
        was_alive
    }

    fn learn_counts(&mut self, sent: Tokens, usage: Usage) {
        let reported = Tokens(usage.total_input());
        if sent == Tokens::ZERO || reported == Tokens::ZERO {
            return;
        }
        self.calibration.observe_whole(sent, reported);
        // In tokens as they are counted here, like everything that it is compared with.
        let here = self.calibration.in_own_tokens(reported);
        let memory = Arc::make_mut(&mut self.memory);
        memory.learn_input(here);
        memory.cache_gave(usage.cache_read, usage.total_input());
    }
}
