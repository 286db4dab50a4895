//! Reads the body of a request as a whole. Takes it as it arrives; gives its bytes, or what is wrong. Never takes more than
//! the limit, and never waits for ever.

use http_body_util::BodyExt;
use hyper::{
    StatusCode,
    body::{Body, Incoming},
};

use super::{Limits, buffers::Buffers};

/// Bytes that are set aside because a client says that they come.
const BELIEVED: usize = 8 * 1024 * 1024;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRead {
    TooLarge,
    TooSlow,
    Broken,
}

impl NotRead {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            NotRead::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            NotRead::TooSlow => StatusCode::REQUEST_TIMEOUT,
            NotRead::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn words(self, limits: &Limits) -> String {
        match self {
            NotRead::TooLarge => {
                format!("the request has more than {} bytes; --max-request raises the limit", limits.request)
            }
            NotRead::TooSlow => format!("the request did not arrive in {} seconds", limits.arrival.as_secs()),
            NotRead::Broken => "the request broke off".to_owned(),
        }
    }
}

/// Reads a body of at most the limit.
pub(crate) async fn read(body: Incoming, limits: &Limits, buffers: &Buffers) -> Result<Vec<u8>, NotRead> {
    if body.size_hint().lower() > u64::try_from(limits.request).unwrap_or(u64::MAX) {
        return Err(NotRead::TooLarge);
    }
    let buffer = buffers.take(announced(&body, limits.request));
    match tokio::time::timeout(limits.arrival, collect_into(buffer, body, limits.request)).await {
        Err(_) => Err(NotRead::TooSlow),
        Ok(Ok((bytes, None))) => Ok(bytes),
        Ok(Ok((_, Some(_)))) => Err(NotRead::TooLarge),
        Ok(Err(_)) => Err(NotRead::Broken),
    }
}

/// Reads a body until its end or until there is more than `most`: then the rest comes with it.
pub(crate) async fn collect(
    body: Incoming,
    most: usize,
) -> Result<(Vec<u8>, Option<Incoming>), hyper::Error> {
    collect_into(Vec::with_capacity(announced(&body, most)), body, most).await
}

/// Returns how many bytes are announced: that is believed up to what most requests have.
fn announced(body: &Incoming, most: usize) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or_default().min(most).min(BELIEVED)
}

async fn collect_into(
    mut bytes: Vec<u8>,
    mut body: Incoming,
    most: usize,
) -> Result<(Vec<u8>, Option<Incoming>), hyper::Error> {
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            bytes.extend_from_slice(data);
        }
        if bytes.len() > most {
            return Ok((bytes, Some(body)));
        }
    }
    Ok((bytes, None))
}
