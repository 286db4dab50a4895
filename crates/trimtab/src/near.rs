//! Names that are nearly right: [`did_you_mean`]. Every "there is no …" of the command line has it.

/// Returns ` (did you mean …?)` for the nearest other name; nothing where none is near.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known).filter(|name| *name != word);
    near.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// Returns the known name that a word is most likely meant to be.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.trim().to_lowercase();
    // One typing mistake in about three letters, or the beginning of a name.
    let most = (word.chars().count() + 1) / 3;
    let distance = |name: &str| strsim::damerau_levenshtein(&word, &name.to_lowercase());
    let near = known.iter().map(|name| (distance(name), *name)).filter(|(far, _)| *far <= most);
    let near = near.min_by_key(|(far, _)| *far).map(|(_, name)| name);
    near.or_else(|| {
        let begun = |name: &&&str| word.len() > 2 && name.to_lowercase().starts_with(&word);
        known.iter().find(begun).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["steady", "steady.safe", "recent", "peer:mask"];
        for (word, expected) in [
            ("stedy", Some("steady")),
            ("Steayd", Some("steady")),
            ("rec", Some("recent")),
            ("nosuch", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), expected, "{word}");
        }
        assert_eq!(did_you_mean("recnt", &known), " (did you mean recent?)");
        assert_eq!(did_you_mean("recent", &known), "", "the same name is no other");
        assert_eq!(did_you_mean("xyz", &known), "");
    }
}
