//! [`UnansweredRequests`]: what a session sent and no provider has answered yet, and [`AwaitedAnswer`], by which whoever sends a request
//! tells what came of it. Requests that a provider refuses are taken out again, so that only accepted ones are remembered.

use std::sync::Arc;

use trimtab_core::{Memory, Millis, Plan, ResentRequest};

use super::sessions::ProxySession;

/// What is sent for a request, as memory takes it.
#[derive(Clone)]
pub(crate) enum SentForm {
    Planned(Arc<Plan>),
    Again(Arc<ResentRequest>),
}

impl SentForm {
    fn enter_memory(&self, memory: &mut Memory, now: Millis) {
        match self {
            SentForm::Planned(plan) => memory.remember_sent(plan, now),
            SentForm::Again(resent) => memory.remember_resent(resent, now),
        }
    }
}

/// The requests of a session that are under way, in the order in which they were sent.
#[derive(Default)]
pub(crate) struct UnansweredRequests {
    requests: Vec<RequestUnderWay>,
    next: u64,
}

struct RequestUnderWay {
    number: u64,
    sent_as: SentForm,
    now: Millis,
    is_accepted: bool,
}

impl UnansweredRequests {
    /// Adds a request that is about to be sent; returns its number.
    pub(crate) fn add(&mut self, sent_as: SentForm, now: Millis) -> u64 {
        let number = self.next;
        self.next += 1;
        self.requests.push(RequestUnderWay { number, sent_as, now, is_accepted: false });
        number
    }

    /// Returns what is remembered if all that is under way is accepted.
    pub(crate) fn memory_with_all(&self, memory: &Arc<Memory>) -> Arc<Memory> {
        let mut memory = Arc::clone(memory);
        for request in &self.requests {
            request.sent_as.enter_memory(Arc::make_mut(&mut memory), request.now);
        }
        memory
    }

    /// Notes that a request was accepted. Memory learns of it as soon as all that was sent earlier is decided.
    fn accept(&mut self, number: u64, memory: &mut Arc<Memory>) {
        if let Some(request) = self.requests.iter_mut().find(|request| request.number == number) {
            request.is_accepted = true;
        }
        self.enter_decided(memory);
    }

    /// Notes that a request was refused: memory never learns of it.
    fn refuse(&mut self, number: u64, memory: &mut Arc<Memory>) {
        self.requests.retain(|request| request.number != number);
        self.enter_decided(memory);
    }

    fn enter_decided(&mut self, memory: &mut Arc<Memory>) {
        let decided = self.requests.iter().take_while(|request| request.is_accepted).count();
        for request in self.requests.drain(..decided) {
            request.sent_as.enter_memory(Arc::make_mut(memory), request.now);
        }
    }
}

/// A request whose answer is awaited. Where nobody says what came of it, as when the client left, it counts as accepted: the
/// provider has most likely read it, and its cache holds it.
pub(crate) struct AwaitedAnswer {
    session: Arc<ProxySession>,
    number: u64,
    is_refused: bool,
}

impl AwaitedAnswer {
    pub(crate) fn new(session: Arc<ProxySession>, number: u64) -> AwaitedAnswer {
        AwaitedAnswer { session, number, is_refused: false }
    }

    /// Returns the session whose request it is.
    pub(crate) fn session(&self) -> &ProxySession {
        &self.session
    }

    /// Says that the provider did not take the request.
    pub(crate) fn refuse(mut self) {
        self.is_refused = true;
    }
}

impl Drop for AwaitedAnswer {
    fn drop(&mut self) {
        let (number, is_refused) = (self.number, self.is_refused);
        self.session.change_unanswered(|unanswered, memory| {
            if is_refused {
                unanswered.refuse(number, memory);
            } else {
                unanswered.accept(number, memory);
            }
        });
    }
}
