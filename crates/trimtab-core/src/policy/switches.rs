//! What whoever fits a request may switch, whatever the policy: folding and cache markers.

/// What becomes of a policy's steps that fold. Earlier folds are repeated in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Folding {
    /// They are passed over, and no summary is asked for.
    Off,
    /// They use the summary that memory holds; until there is one, the plan asks for it.
    #[default]
    WhenGiven,
    /// They use the summary that memory holds, and fold by the ledger alone where it holds none.
    Ledger,
}

impl Folding {
    /// Every way there is.
    pub const ALL: [Folding; 3] = [Folding::Off, Folding::WhenGiven, Folding::Ledger];

    /// Returns the name by which people choose it.
    pub fn name(self) -> &'static str {
        match self {
            Folding::Off => "off",
            Folding::WhenGiven => "summary",
            Folding::Ledger => "ledger",
        }
    }
}

/// Whether a request may carry a cache marker that it did not come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markers {
    /// Those that it came with, and no other.
    #[default]
    AsTheyCame,
    /// One more, where an edit would otherwise make the provider read what precedes it again. The proxy also sets those that
    /// [`markers`](crate::markers) chooses for clients that set none.
    OneMore,
}

impl Markers {
    /// Every way there is.
    pub const ALL: [Markers; 2] = [Markers::AsTheyCame, Markers::OneMore];

    /// Returns the name by which people choose it.
    pub fn name(self) -> &'static str {
        match self {
            Markers::AsTheyCame => "off",
            Markers::OneMore => "auto",
        }
    }
}
