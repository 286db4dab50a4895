//! The rule that a write supersedes a read. Takes a track; gives views in which a file's earlier reads go as soon as the file
//! was changed. Never asks whether the lines that were read are the ones that changed.

use std::collections::HashMap;

use trimtab_core::{
    BlockId,
    facts::{Outcome, Subject, ToolKind},
};

use super::{PeerCase, Rival, RivalRole, walk::PeerWalk};
use crate::replay::Views;

pub(super) const RIVAL: Rival = Rival {
    name: "peer:drop-read-on-edit",
    about: "Drops every read of a file once the file was changed.",
    knob: ("", &[]),
    role: RivalRole::Peer,
    views: drop_reads,
};

fn drop_reads(case: &PeerCase<'_>) -> Views {
    let facts = &case.track.facts;
    let mut walk = PeerWalk::new(case.track);
    // By the names that the end of the session gives to files: that two spellings mean one file is no knowledge of the future.
    let mut reads: HashMap<String, Vec<BlockId>> = HashMap::new();
    while walk.next().is_some() {
        for block in walk.new_results() {
            let Some(fact) = facts.row(block).filter(|fact| fact.outcome != Outcome::Failed) else {
                continue;
            };
            for action in fact.actions.iter() {
                let Subject::File { path, .. } = &action.subject else { continue };
                let key = facts.file_key(path).into_owned();
                if action.kind.changes_files() {
                    for read in reads.remove(&key).into_iter().flatten() {
                        walk.show_text(read, "[Outdated: the file was changed after this read]");
                    }
                } else if action.kind == ToolKind::Read && fact.actions.len() == 1 {
                    reads.entry(key).or_default().push(block);
                }
            }
        }
    }
    walk.into_views()
}
