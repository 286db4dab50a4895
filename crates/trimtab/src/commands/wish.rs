//! `trimtab pin`, `unpin` and `undo`: what is asked for about single blocks while a session runs. Takes handles; keeps the wishes in
//! the store, where a running proxy finds them with its next request.

use anyhow::Result;
use serde::Serialize;
use trimtab_core::{Handle, memory::UndoWhen};
use trimtab_store::{NewWish, Store, Wish, WishKind};

use crate::{
    args::{PinArgs, SessionArgs, UndoArgs, UnpinArgs},
    output::{Output, print_line},
    scope::{Asker, StoreScope},
    store,
};

pub(crate) fn pin(asked: &PinArgs, out: &mut Output) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    if asked.list {
        return list_pins(&scope, asked, out);
    }
    wish_all(&scope, &asked.session, &asked.handles, WishKind::Pin)
}

pub(crate) fn unpin(asked: &UnpinArgs) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    wish_all(&scope, &asked.session, &asked.handles, WishKind::Unpin)
}

pub(crate) fn undo(asked: &UndoArgs) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    let when = if asked.now { UndoWhen::Now } else { UndoWhen::Free };
    wish_all(&scope, &asked.session, &asked.handles, WishKind::Undo(when))
}

fn wish_all(scope: &StoreScope, session: &SessionArgs, handles: &[Handle], kind: WishKind) -> Result<()> {
    for handle in handles {
        print_line(record_wish(scope, session.id.as_deref(), *handle, kind)?);
    }
    Ok(())
}

/// Keeps a wish; returns a sentence about what happens now.
pub(crate) fn record_wish(
    scope: &StoreScope,
    session: Option<&str>,
    handle: Handle,
    kind: WishKind,
) -> Result<String> {
    let session = match (session, kind) {
        (Some(word), _) => Some(scope.session_named(word)?),
        (None, WishKind::Pin | WishKind::Undo(_)) => Some(scope.session_named(&handle.to_string())?),
        // A pin is taken back where there is one.
        (None, WishKind::Unpin) => None,
    };
    let asked = NewWish { session, handle, kind, at: store::current_time() };
    let Wish { session, .. } = scope.store().add_wish(&asked)?;
    Ok(match kind {
        WishKind::Pin => {
            format!("{handle} is pinned in {session}: from the next request on it is sent whole")
        }
        WishKind::Unpin => {
            format!("{handle} is no longer pinned in {session}: the policy decides about it again")
        }
        WishKind::Undo(UndoWhen::Free) => format!(
            "{handle} is sent whole again in {session} as soon as that costs nothing: when the provider's cache is cold, or the request \
             differs before it anyway"
        ),
        WishKind::Undo(UndoWhen::Now) => {
            format!("{handle} is sent whole again in {session} with the next request")
        }
    })
}

#[derive(Serialize)]
struct PinRow {
    handle: String,
    session: String,
    step: u32,
    at_ms: i64,
}

fn list_pins(scope: &StoreScope, asked: &PinArgs, out: &mut Output) -> Result<()> {
    let session = asked.session.id.as_deref().map(|word| scope.session_named(word)).transpose()?;
    let mut pins = scope.store().pins(session)?;
    if session.is_none() {
        let (own, _) = scope.sessions()?;
        pins.retain(|pin| own.iter().any(|session| session.id == pin.session));
    }
    if asked.json {
        let row = |pin: &Wish| PinRow {
            handle: pin.handle.to_string(),
            session: pin.session.to_string(),
            step: pin.step,
            at_ms: pin.at.0,
        };
        return out.write_json(&pins.iter().map(row).collect::<Vec<PinRow>>());
    }
    for Wish { handle, session, step, at, .. } in pins {
        let session = session.to_string();
        out.write_line(format_args!("{handle} {session:6} since step {step}, {}", store::format_minute(at)))?;
    }
    Ok(())
}
