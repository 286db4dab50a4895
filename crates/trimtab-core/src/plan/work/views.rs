//! What results show of files, and whether another one shows the same or newer: what [`StepAction::Seen`](crate::policy::StepAction) and the pass that
//! hides what pays ask before they hide one of them.

use super::{super::contradictions::LineFacts, Work};
use crate::{facts::ResultSort, history::BlockId, plan::may_shorten, verdict::Reason};

impl Work<'_> {
    /// Puts notes in the place of lines that an earlier visible result shows.
    pub(super) fn hide_seen(&mut self, id: BlockId) -> bool {
        if !self.is_open(id) || !may_shorten(self.request.history, id) {
            return false;
        }
        let Some(shows) = self.request.index.row(id).shows else { return false };
        self.made.lines.extend(self.request.history, self.request.facts);
        let is_view = matches!(shows, ResultSort::File | ResultSort::ShellFile);
        let in_sight = |source: BlockId| {
            self.verdict_of(source).shows_all()
                && self.keeps_lines(source)
                && (!is_view || self.is_newest_but(source, id))
        };
        let Some((source, pieces)) = self.made.lines.find_seen(id, shows, in_sight) else { return false };
        let at = self.request.facts[source].step;
        let reason = Reason::Shown { at, handle: self.handle_of_block(source) };
        match self.write_pieces(id, &pieces, &reason, self.context.policy.style) {
            Some(shorter) if shorter.1 < self.tokens(id) => {
                self.hide_behind(id, shorter, reason);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Reads what views tell about lines of files, those that were not read before.
    pub(in crate::plan) fn read_views(&mut self, views: &[BlockId]) {
        for id in views {
            let key = self.view_key(*id);
            if !self.made.told.contains_key(&key) {
                // Of a view that is sent in part, the other lines stand elsewhere.
                let sent_in_part = self.text_now(*id).filter(|_| self.is_trimmed(*id));
                let text = sent_in_part
                    .unwrap_or_else(|| self.request.history.readable_text(&self.request.history[*id]));
                self.made.told.insert(key, LineFacts::from_result(&text, &self.request.facts[*id]));
            }
        }
    }

    /// Names what is read of a view: all of it, or what is left where it is sent in part.
    fn view_key(&self, id: BlockId) -> (BlockId, bool) {
        (id, self.is_trimmed(id))
    }

    /// Tells whether a view shows that an older one is no longer true. Both must have been read.
    pub(in crate::plan) fn contradicts(&self, newer: BlockId, older: BlockId) -> bool {
        let [newer, older] = [newer, older].map(|id| self.made.told.get(&self.view_key(id)));
        newer.zip(older).is_some_and(|(newer, older)| newer.contradicts(older))
    }

    /// Tells whether a view of a file may point at an older one of it: without it no other visible one passes for the newest.
    fn is_newest_but(&self, source: BlockId, id: BlockId) -> bool {
        let Some(file) = self.request.index.file(id) else { return false };
        let is_of_file = |other: BlockId| {
            let shows = self.request.index.row(other).shows;
            matches!(shows, Some(ResultSort::File | ResultSort::ShellFile))
                && self.request.index.files(other).contains(&file)
        };
        let mut others = (0..id.0).map(BlockId).filter(|other| *other != source && is_of_file(*other));
        is_of_file(source)
            && !others.any(|other| {
                self.verdict_of(other).shows_all() && self.request.index.changed_between(file, other, id)
            })
    }
}
