//! How much of its subject an action shows. Takes the options of listings and the filters of pipelines; gives
//! values that tell whether a newer one shows all that an older one showed. Never looks at what was printed.

/// How much of its subject an action shows; by default what the program shows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Coverage {
    /// Whether a listing shows hidden files too.
    pub hidden: bool,
    /// Whether a listing shows files that version control ignores.
    pub ignored: bool,
    /// Whether a listing shows sizes, owners or dates.
    pub details: bool,
    /// How many levels of a directory are listed, where that is limited to more than one.
    pub depth: Option<u32>,
    /// The filters that leave a part only, as they are written; empty where there are none.
    pub filter: Box<str>,
    /// Which lines of the output are left.
    pub output: OutputPart,
}

/// Which lines of an output are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutputPart {
    /// All of them.
    #[default]
    Whole,
    /// The first ones.
    First(u64),
    /// The last ones.
    Last(u64),
}

impl Coverage {
    /// Tells whether all that another one shows of the same subject is shown. Of different filters neither does.
    pub fn covers(&self, other: &Coverage) -> bool {
        let has = |own: bool, others: bool| own || !others;
        has(self.hidden, other.hidden)
            && has(self.ignored, other.ignored)
            && has(self.details, other.details)
            && (self.filter.is_empty() || self.filter == other.filter)
            && self.output.covers(other.output)
    }

    /// Tells whether nothing is left out of what was asked for.
    pub(crate) fn is_whole(&self) -> bool {
        self.filter.is_empty() && self.output == OutputPart::Whole
    }

    /// Adds a filter.
    pub(crate) fn add_filter(&mut self, filter: &str) {
        let before = match self.output {
            OutputPart::Whole => String::new(),
            OutputPart::First(count) => format!("head {count} | "),
            OutputPart::Last(count) => format!("tail {count} | "),
        };
        let first = if self.filter.is_empty() { String::new() } else { format!("{} | ", self.filter) };
        self.filter = format!("{first}{before}{filter}").into();
        self.output = OutputPart::Whole;
    }

    /// Leaves a part of the output.
    pub(crate) fn limit_output(&mut self, output: OutputPart) {
        self.output = match (self.output, output) {
            (OutputPart::Whole, output) | (output, OutputPart::Whole) => output,
            (OutputPart::First(before), OutputPart::First(count)) => OutputPart::First(before.min(count)),
            (OutputPart::Last(before), OutputPart::Last(count)) => OutputPart::Last(before.min(count)),
            (OutputPart::Last(_), OutputPart::First(count)) => {
                return self.add_filter(&format!("head {count}"));
            }
            (OutputPart::First(_), OutputPart::Last(count)) => {
                return self.add_filter(&format!("tail {count}"));
            }
        };
    }
}

impl OutputPart {
    /// Tells whether these lines are all of the others too.
    pub fn covers(self, other: OutputPart) -> bool {
        match (self, other) {
            (OutputPart::Whole, _) => true,
            (OutputPart::First(count), OutputPart::First(others))
            | (OutputPart::Last(count), OutputPart::Last(others)) => count >= others,
            (OutputPart::First(_), OutputPart::Whole | OutputPart::Last(_))
            | (OutputPart::Last(_), OutputPart::Whole | OutputPart::First(_)) => false,
        }
    }
}
