//! A second try after the first was refused. Takes the provider's answer; gives it on, or the answer to a request that is
//! shorter or unchanged. Never tries a third time, and never hides an error that is not about us.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{Response, StatusCode, body::Incoming, http::response};

use super::{
    Proxy,
    body::{self, CollectedBody},
    encoding::AnswerDecoder,
    envelope::Envelope,
    forward::full_request_body,
    metrics::Metric,
    overflow,
    planning::{self, PlanJob},
    prepared_request::{PreparedRequest, Treatment},
    response_notes::record_treatment,
    route::Route,
    send::{RequestHead, SendFailure},
    size_limit::OverflowProof,
};

/// How much of an error is read to see what it says.
const ERROR_BYTES: usize = 256 * 1024;

/// How long an error may take to arrive. The part that has arrived by then is examined, and the rest goes to the client on arrival.
const ERROR_ARRIVES: Duration = Duration::from_secs(5);

/// What of a request is sent again where the provider does not say by how much it was too long.
const SHORTER: f64 = 0.75;

/// What of the allowed share is used: the provider's counts and ours do not part blocks alike.
const MARGIN: f64 = 0.95;

/// One request that was prepared, with all that is needed to send it again.
pub(super) struct PreparedTurn<'a> {
    pub(super) proxy: &'a Arc<Proxy>,
    pub(super) route: &'a Route,
    pub(super) head: RequestHead,
    pub(super) job: PlanJob,
    pub(super) arrived: Bytes,
    pub(super) envelope: Envelope,
}

/// An answer with what was read of it, what was not, what was sent for it, and whether that was the second try.
pub(super) type AnsweredTry =
    (response::Parts, Bytes, Option<Incoming>, PreparedRequest, Option<&'static str>);

impl PreparedTurn<'_> {
    /// Looks at an answer that refuses the request, and tries once more where that may help.
    pub(super) async fn retry_if_too_long(
        &self,
        response: Response<Incoming>,
        prepared: PreparedRequest,
    ) -> Result<AnsweredTry, SendFailure> {
        let (parts, incoming) = response.into_parts();
        if !overflow::may_be(parts.status) || self.job.counts_only {
            return Ok((parts, Bytes::new(), Some(incoming), prepared, None));
        }
        let read = body::collect_body(incoming, ERROR_BYTES, ERROR_ARRIVES).await;
        let CollectedBody { bytes: first, rest } =
            read.map_err(|fault| self.proxy.record_unreachable(&self.head, &fault))?;
        let mut text = Vec::new();
        AnswerDecoder::from_headers(&parts.headers).feed(&first, |decoded| text.extend_from_slice(decoded));
        let text = String::from_utf8_lossy(&text);
        let again = match overflow::too_long(parts.status, &text) {
            Some(_) if prepared.how == Treatment::Observed => {
                self.record_overflow("observed");
                None
            }
            Some(too_long) => self.fit_shorter(&prepared, too_long.allowed).await,
            None => self.as_it_came(&parts, &prepared).await,
        };
        let Some((answer, prepared, retried)) = again else {
            return Ok((parts, Bytes::from(first), rest, prepared, None));
        };
        let (parts, incoming) = answer.into_parts();
        Ok((parts, Bytes::new(), Some(incoming), prepared, Some(retried)))
    }

    /// Fits harder after the provider said that the request is too long.
    async fn fit_shorter(
        &self,
        prepared: &PreparedRequest,
        allowed: Option<f64>,
    ) -> Option<(Response<Incoming>, PreparedRequest, &'static str)> {
        let planner = &self.proxy.planner;
        let share = allowed.map_or(SHORTER, |share| share * MARGIN);
        let before = prepared.about.as_ref();
        let most = before.map(|before| before.sent.scale(share));
        let learn = |proof: OverflowProof| {
            if let Some((before, most)) = before.zip(most) {
                before.session.learn_too_long(&before.model_name, before.sent, most, proof);
            }
        };
        if allowed.is_some() {
            learn(OverflowProof::NamedLimit);
        }
        let Some(mut shorter) = planning::prepare_shorter(planner, self.job.clone(), before, most).await
        else {
            self.record_overflow("nothing to hide");
            return None;
        };
        let outgoing = self.envelope.pack(shorter.prepared.request.clone()).await?;
        let Ok(answer) = self.proxy.send_to_provider(&self.head, full_request_body(outgoing)).await else {
            shorter.prepared.record_refusal(&planner.sessions);
            self.record_overflow("not sent again");
            return None;
        };
        self.record_overflow(if overflow::may_be(answer.status()) { "refused again" } else { "sent again" });
        record_treatment(self.proxy, self.route, &shorter.prepared, Instant::now());
        if !answer.status().is_success() {
            shorter.prepared.record_refusal(&planner.sessions);
            return Some((answer, shorter.prepared, "too-long"));
        }
        learn(OverflowProof::ShorterAccepted);
        let about = shorter.prepared.about.clone();
        let remembered = planning::remember_shorter(planner, self.job.clone(), shorter).await;
        let mut sent = remembered.unwrap_or_else(|fault| PreparedRequest {
            request: None,
            how: Treatment::Fitted,
            fault: Some(fault),
            about,
            awaited: None,
        });
        sent.record_acceptance();
        Some((answer, sent, "too-long"))
    }

    fn record_overflow(&self, result: &'static str) {
        self.proxy.metrics.count(Metric::Overflows { result });
        self.proxy.log.warn(format_args!(
            "{}: the provider says that the request is too long: {result}",
            self.route.endpoint.name()
        ));
    }

    /// Sends the unchanged request after the provider refused what we made of it.
    async fn as_it_came(
        &self,
        refused: &response::Parts,
        prepared: &PreparedRequest,
    ) -> Option<(Response<Incoming>, PreparedRequest, &'static str)> {
        let about = prepared.about.as_ref().filter(|about| about.raw_fits)?;
        if refused.status != StatusCode::BAD_REQUEST || prepared.request.is_none() {
            return None;
        }
        let answer =
            self.proxy.send_to_provider(&self.head, full_request_body(self.arrived.clone())).await.ok()?;
        // Where the request is refused untouched too, the fault is not ours.
        if !answer.status().is_success() {
            return None;
        }
        about.session.record_refusal();
        self.proxy.metrics.count(Metric::Faults { kind: "refused" });
        self.proxy.log.warn(format_args!(
            "error in trimtab: session {}: the provider refused the trimmed request and took it unchanged; it is left alone while it fits",
            about.session.name
        ));
        let about = Some(about.as_sent_unchanged());
        Some((
            answer,
            PreparedRequest { request: None, how: Treatment::Raw, fault: None, about, awaited: None },
            "refused",
        ))
    }
}
