//! Reasons in words. Takes a [`MissReason`]; gives its name and a sentence. Texts of clients are given as they are: who prints
//! them escapes them.

use std::fmt;

use super::{ChangedPlace, ClientChange, MissReason, UnknownBecause};

impl MissReason {
    /// Every name that [`MissReason::name`] gives, with what it says in a few words.
    pub const NAMES: [(&'static str, &'static str); 13] = [
        ("expired", "expired in a pause"),
        ("other-model", "another model"),
        ("compaction", "a compaction"),
        ("client-change", "changed by the client"),
        ("unrecorded-change", "changed by the client outside the recording"),
        ("own-edit", "hidden by trimtab"),
        ("reasoning-left-out", "old reasoning left out by the provider"),
        ("no-marker", "no cache marker"),
        ("too-many-markers", "too many cache markers"),
        ("markers-out-of-reach", "cache markers out of reach"),
        ("below-minimum", "too short to be cached"),
        ("lost-by-provider", "lost by the provider"),
        ("unknown", "unknown"),
    ];

    /// Returns the name of the reason, as JSON and tables write it.
    pub fn name(&self) -> &'static str {
        match self {
            MissReason::Expired { .. } => "expired",
            MissReason::OtherModel { .. } => "other-model",
            MissReason::Compaction => "compaction",
            MissReason::ClientChange(_) => "client-change",
            MissReason::UnrecordedChange { .. } => "unrecorded-change",
            MissReason::OwnEdit(_) => "own-edit",
            MissReason::ReasoningLeftOut => "reasoning-left-out",
            MissReason::NoMarker => "no-marker",
            MissReason::TooManyMarkers { .. } => "too-many-markers",
            MissReason::MarkersOutOfReach { .. } => "markers-out-of-reach",
            MissReason::BelowMinimum { .. } => "below-minimum",
            MissReason::LostByProvider => "lost-by-provider",
            MissReason::Unknown(_) => "unknown",
        }
    }

    /// Returns a name in a few words.
    pub fn title(name: &str) -> &'static str {
        MissReason::NAMES.iter().find(|(known, _)| *known == name).map_or("unknown", |(_, title)| title)
    }
}

impl fmt::Display for MissReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissReason::Expired { idle_ms, lifetime_ms } => write!(
                f,
                "expired: {} idle, {} over the {} that the cache is kept",
                TimeSpan(*idle_ms),
                TimeSpan(idle_ms - lifetime_ms),
                TimeSpan(*lifetime_ms)
            ),
            MissReason::OtherModel { before, now } => write!(f, "another model: {before} before, {now} now"),
            MissReason::Compaction => f.write_str("compaction: the agent replaced its history"),
            MissReason::ClientChange(change) => change.fmt(f),
            MissReason::UnrecordedChange { same } => write!(
                f,
                "the client changed something that is not recorded (tools, system prompt, a hook's text): {same} tokens were still the same"
            ),
            MissReason::OwnEdit(edit) => write!(
                f,
                "trimtab hid more: {} tokens fewer in every request, ${:.4} saved in {} requests since",
                edit.saved_per_request, edit.saved_dollars, edit.requests_since
            ),
            MissReason::ReasoningLeftOut => {
                f.write_str("the provider leaves out the reasoning of earlier turns when the user speaks")
            }
            MissReason::NoMarker => {
                f.write_str("no cache marker: the client asks for no caching, or does not report it")
            }
            MissReason::TooManyMarkers { markers } => write!(f, "{markers} cache markers: the provider takes 4"),
            MissReason::MarkersOutOfReach { positions, look_back } => write!(
                f,
                "markers out of reach: what was cached ends {positions} positions before the nearest marker, which looks back {look_back}"
            ),
            MissReason::BelowMinimum { minimum } => {
                write!(f, "too short: this model caches prefixes from {minimum} tokens on")
            }
            MissReason::LostByProvider => {
                f.write_str("lost by the provider: nothing changed, in time, within reach")
            }
            MissReason::Unknown(UnknownBecause::NoTimes) => f.write_str("unknown: the requests have no times"),
            MissReason::Unknown(UnknownBecause::NothingRead) => f.write_str(
                "unknown: nothing at all was read when a turn began; tools or system prompt changed, which are not recorded, or the provider lost all",
            ),
        }
    }
}

impl fmt::Display for ClientChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            ChangedPlace::Tool(name) => write!(f, "the client changed its tools at {name}")?,
            ChangedPlace::System => f.write_str("the client changed its system prompt")?,
            ChangedPlace::Message(number) => write!(f, "the client changed message {number}")?,
            ChangedPlace::Parameter(name) => write!(f, "the client changed `{name}`")?,
        }
        write!(f, ": \"{}\" is now \"{}\"", self.before, self.now)
    }
}

/// A span of time for people.
struct TimeSpan(i64);

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        match seconds {
            ..60 => write!(f, "{seconds} s"),
            60..3600 if seconds % 60 == 0 => write!(f, "{} min", seconds / 60),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600..172_800 if seconds % 3600 < 60 => write!(f, "{} h", seconds / 3600),
            3600..172_800 => write!(f, "{} h {} min", seconds / 3600, seconds % 3600 / 60),
            172_800.. => write!(f, "{} days", seconds / 86_400),
        }
    }
}
