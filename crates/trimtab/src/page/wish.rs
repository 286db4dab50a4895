//! Pins and undos from a form. Keeps the wish as `trimtab pin` and `undo` do, and answers with the command that does the same.

use anyhow::{Context, Result, bail};
use maud::{Markup, html};
use trimtab_core::{Handle, memory::UndoWhen};
use trimtab_store::{SessionId, WishKind};

use super::{
    PageServer,
    route::PageQuery,
    shell::{self, BarPlace, session_head},
};
use crate::commands::wish::record_wish;

impl PageServer {
    pub(super) fn wish_page(&self, session: SessionId, form: &PageQuery) -> Result<Markup> {
        let scope = self.scope()?;
        let info = scope.own_session(session)?;
        let word = form.get("handle");
        let handle = Handle::parse(word).with_context(|| format!("{word} is not a handle"))?;
        let (kind, command) = match form.get("kind") {
            "pin" => (WishKind::Pin, "pin"),
            "unpin" => (WishKind::Unpin, "unpin"),
            "undo" => (WishKind::Undo(UndoWhen::Free), "undo"),
            "undo-now" => (WishKind::Undo(UndoWhen::Now), "undo --now"),
            other => bail!("{other}: there are pin, unpin, undo and undo-now"),
        };
        let done = record_wish(&scope, Some(&session.to_string()), handle, kind)?;
        // Only to a page of this session.
        let back = form.get("back").parse().map_or_else(
            |_| shell::session_path(session),
            |request| shell::request_path(session, trimtab_store::RequestId(request)),
        );
        let main = html! {
            (session_head(session, &self.session_title(&scope, &info), None))
            p.frame role="status" { (done) "." }
            p { "The same at the command line: " code data-command="" { "trimtab " (command) " " (handle) " --session " (session) } }
            p { a.button href=(back) { "Back to the request" } }
        };
        Ok(shell::whole_page("Done", BarPlace::Sessions, &main))
    }

    /// Returns a form that asks for something about a block.
    pub(super) fn wish_form(
        &self,
        session: SessionId,
        request: i64,
        handle: &str,
        kind: &str,
        words: &str,
    ) -> Markup {
        html! {
            form.inline method="post" action={ (shell::session_path(session)) "/wish" } {
                (self.form_token())
                input type="hidden" name="handle" value=(handle);
                input type="hidden" name="back" value=(request);
                button type="submit" name="kind" value=(kind) aria-label={ (words) " " (handle) } { (words) }
            }
        }
    }
}
