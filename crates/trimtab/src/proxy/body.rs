//! Reads the body of a request as a whole. Takes it as it arrives; gives its bytes, or what is wrong. Never takes more than
//! the limit, and never waits for ever.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{
    StatusCode,
    body::{Body, Incoming},
};
use tokio::time::{Instant, timeout_at};

use super::{ProxyLimits, buffers::BufferPool};

/// Bytes that are set aside before anything has come.
const FIRST: usize = 64 * 1024;

/// How many times as much is set aside as has come, where a client says that more comes: one that only says so holds little.
const AHEAD: usize = 4;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyReadError {
    TooLarge,
    TooSlow,
    Broken,
}

impl BodyReadError {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            BodyReadError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyReadError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyReadError::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn describe(self, limits: &ProxyLimits) -> String {
        match self {
            BodyReadError::TooLarge => {
                format!("the request has more than {} bytes; --max-request raises the limit", limits.request)
            }
            BodyReadError::TooSlow => {
                format!("the request did not arrive in {} seconds", limits.arrival.as_secs())
            }
            BodyReadError::Broken => "the request broke off".to_owned(),
        }
    }
}

/// Reads a body of at most the limit.
pub(crate) async fn read(
    body: Incoming,
    limits: &ProxyLimits,
    buffers: &BufferPool,
) -> Result<Vec<u8>, BodyReadError> {
    if body.size_hint().lower() > u64::try_from(limits.request).unwrap_or(u64::MAX) {
        return Err(BodyReadError::TooLarge);
    }
    let deadline = Instant::now() + limits.arrival;
    match collect_into(buffers, body, limits.request, deadline).await {
        Ok(CollectedBody { rest: None, bytes }) => Ok(bytes),
        Ok(CollectedBody { bytes, .. }) if bytes.len() > limits.request => Err(BodyReadError::TooLarge),
        Ok(CollectedBody { .. }) => Err(BodyReadError::TooSlow),
        Err(_) => Err(BodyReadError::Broken),
    }
}

/// What was read of a body.
pub(crate) struct CollectedBody {
    pub(crate) bytes: Vec<u8>,
    /// What has not been read; nothing where the body has ended.
    pub(crate) rest: Option<Incoming>,
}

/// Reads a body until its end, until there is more than `most`, or until the time is over: then the rest comes with it.
pub(crate) async fn collect_body(
    body: Incoming,
    most: usize,
    time: Duration,
) -> Result<CollectedBody, hyper::Error> {
    collect_into(&BufferPool::default(), body, most, Instant::now() + time).await
}

async fn collect_into(
    buffers: &BufferPool,
    mut body: Incoming,
    most: usize,
    deadline: Instant,
) -> Result<CollectedBody, hyper::Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX).min(most);
    let mut bytes = Vec::with_capacity(announced.min(FIRST));
    loop {
        let Ok(frame) = timeout_at(deadline, body.frame()).await else {
            return Ok(CollectedBody { bytes, rest: Some(body) });
        };
        let Some(frame) = frame else { return Ok(CollectedBody { bytes, rest: None }) };
        if let Some(data) = frame?.data_ref() {
            make_room(&mut bytes, data.len(), announced, buffers);
            bytes.extend_from_slice(data);
        }
        if bytes.len() > most {
            return Ok(CollectedBody { bytes, rest: Some(body) });
        }
    }
}

/// Makes room for what has come, and for some of what is announced.
fn make_room(bytes: &mut Vec<u8>, more: usize, announced: usize, buffers: &BufferPool) {
    let needed = bytes.len().saturating_add(more);
    if needed <= bytes.capacity() || needed > announced {
        return;
    }
    let ahead = needed.saturating_mul(AHEAD);
    if ahead < announced {
        bytes.reserve_exact(ahead - bytes.len());
        return;
    }
    let mut whole = buffers.take_buffer(announced);
    whole.extend_from_slice(bytes);
    *bytes = whole;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how much is set aside when so many bytes of those that are announced have come, 16 KB at a time.
    fn check(came: usize, announced: usize) -> usize {
        let mut bytes = Vec::with_capacity(announced.min(FIRST));
        while bytes.len() < came {
            let more = (came - bytes.len()).min(16 * 1024);
            make_room(&mut bytes, more, announced, &BufferPool::default());
            bytes.resize(bytes.len() + more, 0);
        }
        bytes.capacity()
    }

    #[test]
    fn what_is_set_aside_grows_with_what_has_come() {
        const MIB: usize = 1024 * 1024;
        assert!(check(1, 64 * MIB) <= FIRST);
        assert!(check(MIB, 64 * MIB) <= AHEAD * MIB);
        assert!(check(16 * MIB, 64 * MIB) <= 72 * MIB);
        assert_eq!(check(1000, 1000), 1000);
        assert!(check(4 * MIB, 4 * MIB) >= 4 * MIB);
    }
}
