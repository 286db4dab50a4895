//! What nobody should read by accident: keys, tokens and passwords in what is shown of a conversation. Takes a text; gives it
//! with every secret that a pattern finds covered, line for line. Originals are never changed: who recalls a block gets all of it.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::{Captures, Regex};

/// What is shown in the place of a secret.
pub const COVERED: &str = "[secret]";

/// Tells whether what a pattern found is a secret.
type SecretCheck = fn(&str) -> bool;

/// Patterns, and what their matches must be. Where a pattern has a group named `secret`, only that group is covered.
const USUAL: &[(&str, SecretCheck)] = &[
    // Private keys in PEM, of OpenSSH and of PGP; also cut off, and on one line of JSON.
    (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:\\[nr]|\s|[A-Za-z0-9+/=]{16,})*)",
        is_any,
    ),
    // Keys that say by their beginning what they are.
    (
        r"\b(?:sk-[A-Za-z0-9_-]{16,}|[rsp]k_(?:live|test)_[A-Za-z0-9]{12,}|(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|do[opr]_v1_[a-f0-9]{32,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,})",
        is_any,
    ),
    // Headers.
    (r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{12,})", has_digit),
    // Passwords in addresses.
    (r"://[^\s/:@]*:(?P<secret>[^\s/@]{3,})@", is_any),
    // NAME=value, as shells and .env files write it.
    (
        r"\b(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|TOKEN|KEY|CREDENTIALS?)(?:_[A-Z0-9_]*)?=(?P<secret>[^\s$<({\[;,'\x22\\][^\s;,'\x22\\]{3,})",
        is_no_path,
    ),
    // Passwords in quotes.
    (
        r#"(?i)(?:passw(?:or)?d|passwd|passphrase)[\w.-]*\\?["']?\s*(?::=|=>|[:=])\s*\\?["'](?P<secret>[^"'\\\n]{4,})"#,
        is_any,
    ),
    // Keys and tokens in quotes.
    (
        r#"(?i)(?:secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)(?:[_.-][\w.-]*)?\\?["']?\s*(?::=|=>|[:=])\s*\\?["'](?P<secret>[^"'\\\s]{8,})"#,
        has_digit,
    ),
    // The same without quotes, as YAML and INI files write it. Code assigns names here, which hold no digit as a rule.
    (
        r"(?i)(?:passw(?:or)?d|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)(?:[_.-][\w.-]*)?\s*(?::=|[:=])\s*(?P<secret>[^\s$<({\[;,)'\x22\\&*]{6,})",
        has_digit,
    ),
];

static USUAL_RULES: LazyLock<Vec<SecretRule>> = LazyLock::new(|| {
    let rule = |(pattern, check): &(&str, SecretCheck)| {
        Some(SecretRule { pattern: Regex::new(pattern).ok()?, check: *check })
    };
    USUAL.iter().filter_map(rule).collect()
});

#[derive(Debug, Clone)]
struct SecretRule {
    pattern: Regex,
    check: SecretCheck,
}

/// Patterns of secrets.
#[derive(Debug, Clone)]
pub struct Secrets {
    rules: Vec<SecretRule>,
}

impl Default for Secrets {
    fn default() -> Secrets {
        Secrets { rules: USUAL_RULES.clone() }
    }
}

impl Secrets {
    /// Finds nothing: everything is shown.
    pub fn none() -> Secrets {
        Secrets { rules: Vec::new() }
    }

    /// Adds a pattern, a regular expression. Where it has a group named `secret`, only that group is covered.
    ///
    /// # Errors
    /// Says what is wrong with the expression.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), String> {
        let pattern = Regex::new(pattern).map_err(|fault| fault.to_string())?;
        self.rules.push(SecretRule { pattern, check: is_any });
        Ok(())
    }

    /// Returns a text with its secrets covered. Lines keep their numbers.
    ///
    /// ```
    /// let covered = trimtab_store::Secrets::default().cover_secrets("DB_PASSWORD=hunter2\nport = 80");
    /// assert_eq!(covered, "DB_PASSWORD=[secret]\nport = 80");
    /// ```
    pub fn cover_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find_secrets(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut covered = String::with_capacity(text.len());
        let mut at = 0;
        for secret in found {
            covered.push_str(text.get(at..secret.start).unwrap_or_default());
            covered.push_str(COVERED);
            let lines = text.get(secret.clone()).unwrap_or_default().matches('\n').count();
            covered.extend(std::iter::repeat_n('\n', lines));
            at = secret.end;
        }
        covered.push_str(text.get(at..).unwrap_or_default());
        Cow::Owned(covered)
    }

    /// Returns where secrets are, in order; those that overlap as one.
    fn find_secrets(&self, text: &str) -> Vec<Range<usize>> {
        let of_rule = |rule: &SecretRule| -> Vec<Range<usize>> {
            let secret = |found: Captures<'_>| {
                let secret = found.name("secret").or_else(|| found.get(0))?;
                (!secret.is_empty() && (rule.check)(secret.as_str())).then(|| secret.range())
            };
            rule.pattern.captures_iter(text).filter_map(secret).collect()
        };
        let mut all: Vec<Range<usize>> = self.rules.iter().flat_map(of_rule).collect();
        all.sort_by_key(|found| (found.start, found.end));
        let mut merged: Vec<Range<usize>> = Vec::new();
        for found in all {
            match merged.last_mut() {
                Some(last) if found.start < last.end => last.end = last.end.max(found.end),
                Some(_) | None => merged.push(found),
            }
        }
        merged
    }
}

fn is_any(_secret: &str) -> bool {
    true
}

fn has_digit(secret: &str) -> bool {
    secret.bytes().any(|byte| byte.is_ascii_digit())
}

/// Variables such as `PWD` and `SSH_KEY` often name a file.
fn is_no_path(secret: &str) -> bool {
    !(secret.starts_with(['/', '~', '.']) || secret.contains('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_pattern_is_a_regular_expression() {
        assert_eq!(USUAL_RULES.len(), USUAL.len());
    }

    #[test]
    fn secrets_are_covered_and_what_names_them_is_not() {
        for (text, expected) in [
            ("DB_PASSWORD=hunter2", "DB_PASSWORD=[secret]"),
            ("export STRIPE_KEY=abcd1234 next", "export STRIPE_KEY=[secret] next"),
            ("password: hunter22", "password: [secret]"),
            (r#"{"password": "correct horse"}"#, r#"{"password": "[secret]"}"#),
            (r#"{\"api_key\":\"a1b2c3d4e5\"}"#, r#"{\"api_key\":\"[secret]\"}"#),
            ("client_secret = 'zX9zX9zX9'", "client_secret = '[secret]'"),
            ("Authorization: Bearer abc.def.ghi123", "Authorization: Bearer [secret]"),
            ("postgres://app:s3cr3t@db/main", "postgres://app:[secret]@db/main"),
            ("key sk-ant-api03-abcdefghijklmnop!", "key [secret]!"),
            ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
            ("t eyJhbGciOiJI.eyJzdWIiOiIx.SflKxw u", "t [secret] u"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----\nb",
                "a\n[secret]\n\n\n\nb",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n[cut] the rest is prose",
                "[secret]\n\n[cut] the rest is prose",
            ),
        ] {
            assert_eq!(Secrets::default().cover_secrets(text), expected, "{text}");
        }
    }

    #[test]
    fn code_and_counts_are_no_secrets() {
        for text in [
            "max_tokens: 1000, tokens_before = 123456",
            "fn login(password: &str, token: String) {",
            "let token = next_token(&mut input);",
            "self.password = password",
            "PWD=/home/me/project SSH_KEY=~/.ssh/id_ed25519",
            "KEY_FILE=./server.pem TOKEN=$(cat token)",
            "a basic understanding of everything",
            "see https://example.com:8080/a@b",
        ] {
            assert_eq!(Secrets::default().cover_secrets(text), text);
        }
    }

    #[test]
    fn patterns_are_added_and_left_out() {
        let mut secrets = Secrets::none();
        assert_eq!(secrets.cover_secrets("DB_PASSWORD=hunter2"), "DB_PASSWORD=hunter2");
        secrets.add_pattern(r"employee (?P<secret>\d+)").expect("an expression");
        assert_eq!(secrets.cover_secrets("employee 4711"), "employee [secret]");
        assert!(secrets.add_pattern("(").expect_err("unclosed").contains("unclosed"));
    }
}
