//! The last requests, as they were appended: what the next one is compared with. A bounded cache that may vanish at any
//! time; everything else is read from the store.

use std::collections::VecDeque;

use rusqlite::Connection;
use trimtab_core::{ChainHash, parse_as};

use super::{read, sessions};
use crate::{RequestId, StoreError, error::damage_error, parts};

/// Bytes of requests that are kept: a few conversations at the size of a full window.
const KEPT_BYTES: usize = 16 << 20;

/// A request that the next one may go on from.
pub(super) struct RecentRequest {
    pub(super) request: RequestId,
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
    pub(super) chain: Vec<ChainHash>,
    pub(super) plan: read::VerdictRows,
}

#[derive(Default)]
pub(super) struct RecentRequests {
    newest_last: VecDeque<RecentRequest>,
    bytes: usize,
}

impl RecentRequests {
    pub(super) fn keep_request(&mut self, recent: RecentRequest) {
        self.bytes += recent.bytes.len();
        self.newest_last.push_back(recent);
        while self.bytes > KEPT_BYTES {
            let Some(oldest) = self.newest_last.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }

    /// Takes out a request that is in the store.
    pub(super) fn take_request(
        &mut self,
        connection: &Connection,
        request: RequestId,
    ) -> Result<RecentRequest, StoreError> {
        let found = self.newest_last.iter().position(|recent| recent.request == request);
        // It is about to be followed by a newer one: there is no use in keeping it.
        if let Some(recent) = found.and_then(|index| self.newest_last.remove(index)) {
            self.bytes -= recent.bytes.len();
            return Ok(recent);
        }
        let info = sessions::request_info(connection, request)?;
        let bytes = read::rebuild_bytes(connection, request)?;
        let history = parse_as(bytes, info.format)
            .map_err(|fault| damage_error(format!("request {}", request.0), fault))?;
        let plan = read::read_verdicts(connection, request)?;
        let (ends, chain) = (parts::part_ends(&history), history.chain());
        Ok(RecentRequest { request, bytes: history.into_bytes(), ends, chain, plan })
    }

    pub(super) fn clear(&mut self) {
        self.newest_last.clear();
        self.bytes = 0;
    }
}
