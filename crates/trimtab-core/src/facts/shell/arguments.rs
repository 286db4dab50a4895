//! Options and operands of one command. Takes its words and the options that take a value; gives both apart.
//! Never knows a program: which options take values is the caller's to say.

/// The words after a program's name.
pub(super) struct ProgramArguments<'a> {
    /// Options with their values, where they take one.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    pub(super) operands: Vec<&'a str>,
}

impl<'a> ProgramArguments<'a> {
    /// Splits words; an option in `with_value` takes the next word, or what is glued to it.
    pub(super) fn split_words(words: &[&'a str], with_value: &[&str]) -> ProgramArguments<'a> {
        let mut options = Vec::new();
        let mut operands = Vec::new();
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            if word == "--" {
                operands.extend(rest.by_ref());
            } else if !word.starts_with('-') || word == "-" {
                operands.push(word);
            } else if let Some((name, value)) =
                word.split_once('=').filter(|(name, _)| name.starts_with("--"))
            {
                options.push((name, Some(value)));
            } else if with_value.contains(&word) {
                options.push((word, rest.next()));
            } else if let Some(name) = glued_option(word, with_value) {
                options.push((name, word.get(name.len()..)));
            } else {
                options.push((word, None));
            }
        }
        ProgramArguments { options, operands }
    }

    pub(super) fn option_value(&self, names: &[&str]) -> Option<&'a str> {
        self.options.iter().rev().find(|(name, _)| names.contains(name)).and_then(|(_, value)| *value)
    }

    pub(super) fn has_option(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }

    /// Tells whether a one-letter option is there, alone or among others (`-la`).
    pub(super) fn has_letter(&self, letter: char) -> bool {
        self.options.iter().any(|(name, _)| !name.starts_with("--") && name.contains(letter))
    }
}

/// Returns the option to which a value is glued, as in `-n5`.
fn glued_option<'a>(word: &'a str, with_value: &[&str]) -> Option<&'a str> {
    let name = word.get(..2).filter(|_| !word.starts_with("--"))?;
    with_value.contains(&name).then_some(name)
}
