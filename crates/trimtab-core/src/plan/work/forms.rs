//! What is sent for the first time, written in fewer tokens: what [`StepAction::Rewrite`](crate::policy::StepAction) does. Nothing is
//! hidden, so that a block that is written otherwise counts as shown in every pass, and may be shortened later from its original.

use std::sync::Arc;

use super::{super::steps::is_cacheless, Work};
use crate::{
    history::{BlockId, BlockKind, PartKind},
    plan::may_shorten,
    rewrite::{RewriteForm, rewrite_as},
    units::Tokens,
    verdict::Verdict,
};

/// The fewest tokens that a form must save: for less no second text is worth keeping.
const FORM_SAVES_AT_LEAST: Tokens = Tokens(16);

impl Work<'_> {
    /// Writes a block in a form where that is smaller; tells whether it did.
    pub(super) fn rewrite_block(&mut self, id: BlockId, form: RewriteForm) -> bool {
        if !self.is_open(id) || !self.is_one_text(id) || !may_shorten(self.request.history, id) {
            return false;
        }
        let rewritten = match self.verdict_of(id).text() {
            Some(text) => rewrite_as(text, form),
            None => rewrite_as(&self.request.history.block_text(&self.request.history[id]), form),
        };
        let Some(text) = rewritten else { return false };
        let text: Arc<str> = text.into();
        let tokens = self.count_as(id, &text);
        let saves = self.tokens_now(id) - tokens;
        // A note that points at lines of it says which.
        if saves < FORM_SAVES_AT_LEAST
            || is_cacheless(self, saves)
            || (!form.keeps_lines() && self.is_pointed_at(id))
        {
            return false;
        }
        let mut forms = self.forms_of(id).to_vec();
        forms.push(form);
        self.hide_block(id, Verdict::Rewrite { text, forms }, tokens);
        true
    }

    /// Tells whether a note points at a block: one of this request, or one that the request came with.
    fn is_pointed_at(&self, id: BlockId) -> bool {
        let index = self.request.index;
        let came_with = |other: BlockId| {
            index.row(other).points_at.is_some_and(|hash| index.blocks_named(hash).contains(&id))
        };
        self.draft.pointed_at.contains_key(&id) || self.request.history.ids().any(came_with)
    }

    /// Tells whether every line of a block is sent as the line of its number.
    pub(super) fn keeps_lines(&self, id: BlockId) -> bool {
        self.forms_of(id).iter().all(|form| form.keeps_lines())
    }

    fn forms_of(&self, id: BlockId) -> &[RewriteForm] {
        match self.verdict_of(id) {
            Verdict::Rewrite { forms, .. } => forms,
            Verdict::Keep
            | Verdict::Shorten { .. }
            | Verdict::Point { .. }
            | Verdict::Trim { .. }
            | Verdict::Fold { .. }
            | Verdict::Drop { .. } => &[],
        }
    }

    /// Tells whether a block is one text: of several the new one would be a single one.
    fn is_one_text(&self, id: BlockId) -> bool {
        let block = &self.request.history[id];
        let parts = self.request.history.parts_of(block);
        block.kind != BlockKind::Call && matches!(parts, [part] if part.kind == PartKind::Text)
    }
}
