//! Spellings of paths on Windows. Takes a path as an agent wrote it (`D:\a\b`, `d:/a/b`, `/d/a/b` of MSYS, `/mnt/d/a/b` of
//! WSL, `\\server\share\a`); gives the one name of all of them. Never touches a path without a drive or a server unless the
//! session showed that it runs on Windows: a backslash is a letter like others elsewhere.

use std::borrow::Cow;

use super::subject::normalize_path;

const SEPARATORS: [char; 2] = ['\\', '/'];

/// What a session showed about drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Drives {
    /// It runs on Windows: `/d/a` is `D:\a`, and a backslash separates names.
    pub(crate) on_windows: bool,
    /// It names drives from WSL too: `/mnt/d/a` is `D:\a`.
    pub(crate) on_wsl: bool,
}

/// Tells whether a path begins with a drive or a server.
pub(crate) fn is_windows(path: &str) -> bool {
    starts_with_drive(path) || starts_with_server(path)
}

/// Tells whether a path begins with a drive: `D:\`, `d:/`, or is `D:` alone.
pub(crate) fn starts_with_drive(path: &str) -> bool {
    match path.as_bytes() {
        [letter, b':'] | [letter, b':', b'\\' | b'/', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Tells whether a path is spelled as MSYS and Git Bash spell those of a drive: `/d` or `/d/…`.
pub(crate) fn is_msys(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', letter] | [b'/', letter, b'/', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Returns the last name in a path; a backslash separates names only where the path begins with a drive or a server.
pub(crate) fn file_name(path: &str) -> &str {
    let name = match is_windows(path) {
        true => path.trim_end_matches(SEPARATORS).rsplit(SEPARATORS).next(),
        false => path.trim_end_matches('/').rsplit('/').next(),
    };
    name.unwrap_or(path)
}

/// Tells whether a path ends as that of a directory.
pub(crate) fn ends_as_directory(path: &str) -> bool {
    path.ends_with('/') || (is_windows(path) && path.ends_with('\\'))
}

/// Returns a path with slashes between its names, where it begins with a drive or a server.
pub(crate) fn with_slashes(path: &str) -> Cow<'_, str> {
    match is_windows(path) && path.contains('\\') {
        true => Cow::Owned(path.replace('\\', "/")),
        false => Cow::Borrowed(path),
    }
}

/// Returns a path that begins with a drive or a server as it is written; only where a name in it is empty, `.` or `..` with
/// these resolved.
pub(crate) fn tidy_path(path: &str) -> String {
    let (root, names) = split_root(path);
    let is_tidy = |name: &str| !matches!(name, "" | "." | "..");
    if names.trim_end_matches(SEPARATORS).split(SEPARATORS).all(is_tidy) {
        return format!("{root}{}", names.trim_end_matches(SEPARATORS));
    }
    let separator =
        if path.find(SEPARATORS).is_some_and(|at| path.get(at..=at) == Some("/")) { "/" } else { "\\" };
    format!("{root}{}", resolve_names(names).join(separator))
}

/// Returns a path that is seen from a directory on Windows, spelled as the directory is.
pub(crate) fn joined_on_windows(directory: &str, path: &str) -> String {
    let separator = if directory.contains('\\') { "\\" } else { "/" };
    let path = path.replace(SEPARATORS, separator);
    match is_windows(directory) {
        true => tidy_path(&format!("{directory}{separator}{path}")),
        false => normalize_path(&format!("{directory}/{path}")),
    }
}

/// Returns the one name of all spellings of a path: `D:/a/b`, `//server/share/a`; another path as it is.
pub(crate) fn one_name(path: &str, drives: Drives) -> Cow<'_, str> {
    if is_windows(path) {
        let (root, names) = split_root(path);
        let root = if starts_with_drive(path) {
            root.to_ascii_uppercase().replace('\\', "/")
        } else {
            "//".to_owned()
        };
        return Cow::Owned(format!("{root}{}", resolve_names(names).join("/")));
    }
    if drives.on_windows {
        let inner = path
            .strip_prefix("/cygdrive")
            .filter(|inner| is_msys(inner))
            .or(Some(path).filter(|path| is_msys(path)));
        if let Some(named) = inner.and_then(drive_of_msys) {
            return Cow::Owned(named);
        }
    }
    if drives.on_wsl
        && let Some(named) = path.strip_prefix("/mnt").and_then(drive_of_msys)
    {
        return Cow::Owned(named);
    }
    match drives.on_windows && path.contains('\\') && !path.starts_with('$') {
        true => Cow::Owned(normalize_path(&path.replace('\\', "/"))),
        false => Cow::Borrowed(path),
    }
}

/// Returns the path of a drive as WSL names it, and the other way round: `D:/a` and `/mnt/d/a`.
pub(crate) fn other_side_of_wsl(path: &str) -> Option<String> {
    if let Some(inner) = path.strip_prefix("/mnt") {
        return drive_of_msys(inner);
    }
    let name = one_name(path, Drives::default());
    let (letter, rest) = name.split_at_checked(1).filter(|_| starts_with_drive(path))?;
    Some(format!("/mnt/{}{}", letter.to_ascii_lowercase(), rest.strip_prefix(':')?))
}

/// Reads `/d/a` as `D:/a`.
fn drive_of_msys(path: &str) -> Option<String> {
    let letter = path.get(1..2).filter(|_| is_msys(path))?.to_ascii_uppercase();
    Some(format!("{letter}:/{}", resolve_names(path.get(2..)?).join("/")))
}

/// Tells whether a path begins with a server: two backslashes and a name.
fn starts_with_server(path: &str) -> bool {
    match path.as_bytes() {
        [b'\\', b'\\', first, ..] => first.is_ascii_alphanumeric() || matches!(first, b'.' | b'?' | b'_'),
        _ => false,
    }
}

/// Takes a path apart: the drive or the mark of a server with the separator after it, and the names.
fn split_root(path: &str) -> (Cow<'_, str>, &str) {
    if !starts_with_drive(path) {
        return path
            .split_at_checked(2)
            .map_or((Cow::Borrowed(""), path), |(root, names)| (Cow::Borrowed(root), names));
    }
    match path.split_at_checked(3) {
        Some((root, names)) => (Cow::Borrowed(root), names),
        // `D:` alone.
        None => (Cow::Owned(format!("{path}\\")), ""),
    }
}

fn resolve_names(names: &str) -> Vec<&str> {
    let mut resolved = Vec::new();
    for name in names.split(SEPARATORS) {
        match name {
            "" | "." => {}
            ".." => {
                resolved.pop();
            }
            name => resolved.push(name),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ON_WINDOWS: Drives = Drives { on_windows: true, on_wsl: false };
    const ON_WSL: Drives = Drives { on_windows: true, on_wsl: true };

    #[test]
    fn every_spelling_of_a_path_has_one_name() {
        let all = [
            "D:\\proj\\src\\a.go",
            "d:\\proj\\src\\a.go",
            "D:/proj/src/a.go",
            "D:\\proj/src\\a.go",
            "D:\\proj\\.\\x\\..\\src\\\\a.go",
            "/d/proj/src/a.go",
            "/D/proj/src/a.go",
            "/cygdrive/d/proj/src/a.go",
        ];
        for path in all {
            assert_eq!(one_name(&normalize_path(path), ON_WINDOWS), "D:/proj/src/a.go", "{path}");
        }
        assert_eq!(one_name("/mnt/d/proj/src/a.go", ON_WSL), "D:/proj/src/a.go");
        assert_eq!(one_name("\\\\server\\share\\x.txt", ON_WINDOWS), "//server/share/x.txt");
        assert_eq!(one_name("\\\\server/share\\y\\..\\x.txt", ON_WINDOWS), "//server/share/x.txt");
        assert_eq!(one_name("src\\a.go", ON_WINDOWS), "src/a.go");
        assert_eq!(one_name("D:", ON_WINDOWS), "D:/");
    }

    #[test]
    fn where_nothing_shows_windows_a_path_stays_what_it_is() {
        for path in
            ["/d/proj/a.go", "/mnt/d/proj/a.go", "src\\a.go", "/srv/we\\ird", "d:x", "dd:/x", "~/d:/x"]
        {
            assert_eq!(one_name(path, Drives::default()), path);
            assert_eq!(normalize_path(path), path);
        }
        assert_eq!(one_name("/mnt/d/proj/a.go", ON_WINDOWS), "/mnt/d/proj/a.go");
        assert_eq!(one_name("/mnt/data/a.go", ON_WSL), "/mnt/data/a.go");
        assert_eq!(one_name("/dev/null", ON_WSL), "/dev/null");
    }

    #[test]
    fn a_path_is_written_as_the_agent_wrote_it() {
        for path in
            ["D:\\proj\\src\\a.go", "d:/proj/src/a.go", "D:\\proj/src\\a.go", "\\\\server\\share\\x", "D:\\"]
        {
            assert_eq!(normalize_path(path), path);
        }
        assert_eq!(normalize_path("D:\\proj\\x\\..\\a.go"), "D:\\proj\\a.go");
        assert_eq!(normalize_path("D:/proj//a.go/"), "D:/proj/a.go");
        assert_eq!(normalize_path("file:///D:/proj/a.go"), "D:/proj/a.go");
    }

    #[test]
    fn the_two_sides_of_wsl_name_each_other() {
        assert_eq!(other_side_of_wsl("/mnt/d/proj").as_deref(), Some("D:/proj"));
        assert_eq!(other_side_of_wsl("d:\\proj").as_deref(), Some("/mnt/d/proj"));
        assert_eq!(other_side_of_wsl("/mnt/data/proj"), None);
        assert_eq!(other_side_of_wsl("/srv"), None);
    }

    /// A path in one of its spellings: the names, the letter, which separators, which form.
    fn spelled(names: &[String], letter: char, form: u8, bits: u64) -> String {
        let separator = |at: usize| if bits >> (at % 64) & 1 == 0 { '\\' } else { '/' };
        let mut path = match form {
            0 => format!("{letter}:{}", separator(0)),
            1 => format!("{}:{}", letter.to_ascii_uppercase(), separator(0)),
            2 => format!("/{letter}/"),
            _ => format!("/mnt/{letter}/"),
        };
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                path.push(if form < 2 { separator(at) } else { '/' });
            }
            if form < 2 && bits >> (at + 20) & 7 == 7 {
                path.push_str(".\\");
            }
            path.push_str(name);
        }
        path
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_path_in_any_spelling_has_one_name(
            names in prop::collection::vec("[A-Za-z0-9_][A-Za-z0-9_ .-]{0,6}[A-Za-z0-9_]", 1..6),
            letter in prop::char::range('a', 'z'),
            forms in prop::collection::vec((0_u8..4, any::<u64>()), 1..6),
        ) {
            let expected = format!("{}:/{}", letter.to_ascii_uppercase(), names.join("/"));
            for (form, bits) in forms {
                let path = spelled(&names, letter, form, bits);
                let normal = normalize_path(&path);
                prop_assert_eq!(&one_name(&normal, ON_WSL), &expected, "{}", path);
            }
        }

        #[test]
        fn a_path_of_another_system_is_left_alone(path in "(/|\\./|~/)?[a-z\\\\]{2,5}(/[a-z. \\\\]{1,4}[a-z]){0,4}") {
            let normal = normalize_path(&path);
            // Two backslashes at the beginning name a server.
            prop_assume!(!is_windows(&normal));
            prop_assert_eq!(&one_name(&normal, Drives::default()), &normal);
        }
    }
}
