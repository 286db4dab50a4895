//! Connections that leave HTTP, as web sockets do. Takes a request to upgrade; gives the provider's answer and then
//! carries bytes both ways. Never looks into them: such conversations pass unchanged.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    AnswerBody, Proxy,
    forward::full_answer_body,
    ledger::UnsettledRequest,
    observed_answer::{AnswerReaders, ObservedAnswer},
    route::Route,
    send::{SendFailure, provider_head},
};

/// Asks the provider to upgrade, and connects the two sides where it does.
pub(super) async fn upgrade_and_connect(
    proxy: &Arc<Proxy>,
    route: &Route,
    mut request: Request<Incoming>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<AnswerBody>, SendFailure> {
    let client = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let mut head = provider_head(route, &parts)?;
    restore_upgrade_headers(&mut head.headers, &parts.headers);
    let mut response = proxy.send_to_provider(&head, Either::Left(Full::new(Bytes::new()))).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let (mut parts, incoming) = response.into_parts();
        super::headers::to_client(&mut parts.headers);
        let account = UnsettledRequest::without_reading(permit);
        let done = Box::new(move |_, _| drop(account));
        return Ok(Response::from_parts(
            parts,
            Either::Right(ObservedAnswer::new(
                Bytes::new(),
                Some(incoming),
                AnswerReaders::default(),
                proxy.config.limits.upstream,
                done,
            )),
        ));
    }
    let provider = hyper::upgrade::on(&mut response);
    tokio::spawn(async move {
        let _permit = permit;
        let (Ok(client), Ok(provider)) = (client.await, provider.await) else { return };
        let (mut client, mut provider) = (TokioIo::new(client), TokioIo::new(provider));
        // Either side may end it at any time: that is how such connections end.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut provider).await;
    });
    let (mut parts, _) = response.into_parts();
    let answered = parts.headers.clone();
    super::headers::to_client(&mut parts.headers);
    restore_upgrade_headers(&mut parts.headers, &answered);
    Ok(Response::from_parts(parts, full_answer_body(Bytes::new())))
}

/// Puts back the two headers by which both sides agree to upgrade.
fn restore_upgrade_headers(headers: &mut hyper::HeaderMap, from: &hyper::HeaderMap) {
    if let Some(upgrade) = from.get(UPGRADE) {
        headers.insert(UPGRADE, upgrade.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
}
