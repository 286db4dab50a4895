//! Which names are still to be seen. Takes the texts that are sent; gives the names of a text that stand in no other one.
//! Never keeps a text: a name is known by its hash, with the number of texts that hold it.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher},
};

use crate::{digest::names_in, history::readable_text, memory::FirstBytesHasher};

/// The visible names.
#[derive(Debug, Clone, Default)]
pub(super) struct VisibleNames {
    texts: HashMap<u64, u32, BuildHasherDefault<FirstBytesHasher>>,
}

impl VisibleNames {
    /// Adds a text that is sent.
    pub(super) fn add_text(&mut self, text: &str) {
        self.add_names(&distinct_names(text));
    }

    /// Adds the names of a text that is sent, each once.
    pub(super) fn add_names(&mut self, names: &[u64]) {
        for name in names {
            *self.texts.entry(*name).or_default() += 1;
        }
    }

    /// Takes a text back that is sent no more.
    pub(super) fn remove_text(&mut self, text: &str) {
        for name in distinct_hashes(text) {
            self.texts.entry(name).and_modify(|texts| *texts = texts.saturating_sub(1));
        }
    }

    /// Returns the names of a text which stand in no other one, each once. The part of it that is sent is among the texts.
    pub(super) fn only_in(&self, text: &str, sent: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let own = distinct_hashes(sent);
        let alone = |name: &&str| {
            let name = hash_name(name);
            self.texts.get(&name).copied().unwrap_or_default() <= u32::from(own.contains(&name))
        };
        names_in(&readable_text(text))
            .filter(alone)
            .filter(|name| seen.insert(*name))
            .map(str::to_owned)
            .collect()
    }
}

/// Returns the names of a text, each once, by hash.
pub(super) fn distinct_names(text: &str) -> Box<[u64]> {
    distinct_hashes(text).into_iter().collect()
}

/// Returns the names of what a text says: in JSON, escapes would be taken for letters of names.
fn distinct_hashes(text: &str) -> HashSet<u64> {
    names_in(&readable_text(text)).map(hash_name).collect()
}

/// Returns the hash by which names and lines are known.
pub(super) fn hash_name(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lost_only_with_the_last_text_that_holds_it() {
        let mut visible = VisibleNames::default();
        let texts = ["read_file in src/lib.rs", "src/lib.rs and src/main.rs"];
        texts.iter().for_each(|text| visible.add_text(text));
        assert_eq!(visible.only_in(texts[0], texts[0]), ["read_file"]);
        visible.remove_text(texts[0]);
        visible.add_text("[names in it: read_file]");
        assert_eq!(visible.only_in(texts[1], texts[1]), ["src/lib.rs", "src/main.rs"]);
        // Of a text that is sent in part, a name in the other part stands elsewhere or nowhere.
        visible.add_text("src/other.rs");
        assert_eq!(visible.only_in("src/other.rs and src/main.rs", texts[1]), ["src/main.rs"]);
    }
}
