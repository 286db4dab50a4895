//! Reads the body of a request as a whole. Takes it as it arrives; gives its bytes, or what is wrong. Never takes more than
//! the limit, and never waits for ever.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{
    StatusCode,
    body::{Body, Incoming},
};
use tokio::time::{Instant, timeout_at};

use super::{Limits, buffers::Buffers};

/// Bytes that are set aside before anything has come.
const FIRST: usize = 64 * 1024;

/// How many times as much is set aside as has come, where a client says that more comes: one that only says so holds little.
const AHEAD: usize = 4;

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
    let deadline = Instant::now() + limits.arrival;
    match collect_into(buffers, body, limits.request, deadline).await {
        Ok(Collected { rest: None, bytes }) => Ok(bytes),
        Ok(Collected { bytes, .. }) if bytes.len() > limits.request => Err(NotRead::TooLarge),
        Ok(Collected { .. }) => Err(NotRead::TooSlow),
        Err(_) => Err(NotRead::Broken),
    }
}

/// What was read of a body.
pub(crate) struct Collected {
    pub(crate) bytes: Vec<u8>,
    /// What has not been read; nothing where the body has ended.
    pub(crate) rest: Option<Incoming>,
}

/// Reads a body until its end, until there is more than `most`, or until the time is over: then the rest comes with it.
pub(crate) async fn collect(body: Incoming, most: usize, time: Duration) -> Result<Collected, hyper::Error> {
    collect_into(&Buffers::default(), body, most, Instant::now() + time).await
}

async fn collect_into(
    buffers: &Buffers,
    mut body: Incoming,
    most: usize,
    deadline: Instant,
) -> Result<Collected, hyper::Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX).min(most);
    let mut bytes = Vec::with_capacity(announced.min(FIRST));
    loop {
        let Ok(frame) = timeout_at(deadline, body.frame()).await else {
            return Ok(Collected { bytes, rest: Some(body) });
        };
        let Some(frame) = frame else { return Ok(Collected { bytes, rest: None }) };
        if let Some(data) = frame?.data_ref() {
            make_room(&mut bytes, data.len(), announced, buffers);
            bytes.extend_from_slice(data);
        }
        if bytes.len() > most {
            return Ok(Collected { bytes, rest: Some(body) });
        }
    }
}

/// Makes room for what has come, and for some of what is announced.
fn make_room(bytes: &mut Vec<u8>, more: usize, announced: usize, buffers: &Buffers) {
    let needed = bytes.len().saturating_add(more);
    if needed <= bytes.capacity() || needed > announced {
        return;
    }
    let ahead = needed.saturating_mul(AHEAD);
    if ahead < announced {
        bytes.reserve_exact(ahead - bytes.len());
        return;
    }
    let mut whole = buffers.take(announced);
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
            make_room(&mut bytes, more, announced, &Buffers::default());
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
