//! The last requests, as they were appended: what the next one is compared with. A bounded cache that may vanish at any
//! time; what is not in it is read from the store.

use std::collections::VecDeque;

use rusqlite::Connection;
use trimtab_core::{ChainHash, parse_as};

use super::{read, sessions};
use crate::{RequestId, StoreError, error::damaged, parts};

/// Bytes of requests that are kept: a few conversations at the size of a full window.
const KEPT_BYTES: usize = 16 << 20;

/// A request that the next one may go on from.
pub(super) struct Recent {
    pub(super) request: RequestId,
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
    pub(super) chain: Vec<ChainHash>,
    pub(super) plan: read::Verdicts,
}

#[derive(Default)]
pub(super) struct Recents {
    newest_last: VecDeque<Recent>,
    bytes: usize,
}

impl Recents {
    pub(super) fn keep(&mut self, recent: Recent) {
        self.bytes += recent.bytes.len();
        self.newest_last.push_back(recent);
        while self.bytes > KEPT_BYTES {
            let Some(oldest) = self.newest_last.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }

    /// Takes out a request that is in the store.
    pub(super) fn take(&mut self, connection: &Connection, request: RequestId) -> Result<Recent, StoreError> {
        let found = self.newest_last.iter().position(|recent| recent.request == request);
        // It is about to be followed by a newer one: there is no use in keeping it.
        if let Some(recent) = found.and_then(|index| self.newest_last.remove(index)) {
            self.bytes -= recent.bytes.len();
            return Ok(recent);
        }
        let info = sessions::request(connection, request)?;
        let bytes = read::bytes(connection, request)?;
        let history =
            parse_as(bytes, info.format).map_err(|fault| damaged(format!("request {}", request.0), fault))?;
        let plan = read::plan(connection, request)?;
        let (ends, chain) = (parts::ends(&history), history.chain());
        Ok(Recent { request, bytes: history.into_bytes(), ends, chain, plan })
    }

    pub(super) fn clear(&mut self) {
        self.newest_last.clear();
        self.bytes = 0;
    }
}
