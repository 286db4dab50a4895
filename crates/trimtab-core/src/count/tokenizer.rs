//! Which tokenizer a model counts with, and how far its count can be trusted. Takes a model's name as
//! people write it; gives a `Tokenizer`. Never fails: an unknown name gets a named estimate.

use crate::prices::bare_model_name;

/// How text is turned into a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// Byte-pair encoding with a public vocabulary.
    Exact(Vocabulary),
    /// Anthropic's, which is not public: an estimate.
    Claude(ClaudeGeneration),
    /// Google's, estimated from the public vocabulary of Gemma 3.
    Gemini,
    /// That of a model nothing is known about: counted as o200k, and said to be an estimate.
    Unknown,
    /// Nothing for an empty text, else a quarter of its characters and one.
    CharsPerFour,
}

/// A public vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vocabulary {
    /// `OpenAI` since GPT-4o.
    O200k,
    /// `OpenAI` up to GPT-4 Turbo.
    Cl100k,
    /// Llama 3 and 4.
    Llama3,
    /// `DeepSeek` V3 and V4.
    DeepSeek,
    /// Qwen 2 to 3.
    Qwen,
    /// Mistral's since v3.
    Mistral,
    /// Kimi K2 and K3.
    Kimi,
    /// GLM 4.
    Glm4,
    /// GLM 5.
    Glm5,
    /// `MiniMax` M2.
    MiniMax,
}

/// Claude models that share a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaudeGeneration {
    /// Claude 3 to Opus 4.6.
    UpToOpus46,
    /// Opus 4.7 and all later models.
    FromOpus47,
}

/// How far a count can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exactness {
    /// The provider counts the same text the same.
    Exact,
    /// An estimate: for 95 of 100 texts the real count is at most the estimate times `guard`.
    Estimate {
        /// The factor that protects a budget.
        guard: f64,
    },
}

impl Exactness {
    /// Returns the factor that a budget is guarded with.
    pub const fn guard(self) -> f64 {
        match self {
            Self::Exact => 1.0,
            Self::Estimate { guard } => guard,
        }
    }
}

impl Tokenizer {
    /// Chooses by the family that a model's name says.
    ///
    /// Vendor prefixes, dates and variants are read past: `us.anthropic.claude-opus-4-5-20251101-v1:0`
    /// is a Claude up to Opus 4.6. `chars/4` names the rough count.
    pub fn for_model(model: &str) -> Self {
        if model == "chars/4" {
            return Self::CharsPerFour;
        }
        let name = bare_model_name(model);
        if name.contains("claude") || CLAUDE_ALIASES.contains(&name.as_str()) {
            return Self::Claude(claude_generation(&name));
        }
        FAMILIES
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
            .map_or(Self::Unknown, |&(_, tokenizer)| tokenizer)
    }

    /// Says how far this tokenizer's counts can be trusted.
    ///
    /// The guards of Claude and Gemini are the 95th percentile of real count over estimate on texts
    /// that the estimate was not fitted to, as `scripts/fit-estimates` prints it.
    pub const fn exactness(self) -> Exactness {
        match self {
            Self::Exact(_) => Exactness::Exact,
            Self::Claude(_) | Self::Gemini => Exactness::Estimate { guard: 1.13 },
            // The 95th percentile of Gemma 3 over o200k by kind of content is 1.04 to 1.35.
            Self::Unknown => Exactness::Estimate { guard: 1.35 },
            // The worst of the kinds measured is text in Chinese: 60 % below o200k.
            Self::CharsPerFour => Exactness::Estimate { guard: 2.5 },
        }
    }
}

impl Vocabulary {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::O200k,
        Self::Cl100k,
        Self::Llama3,
        Self::DeepSeek,
        Self::Qwen,
        Self::Mistral,
        Self::Kimi,
        Self::Glm4,
        Self::Glm5,
        Self::MiniMax,
    ];

    /// Returns the name it is published under.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Llama3 => "llama3",
            Self::DeepSeek => "deepseek_v3",
            Self::Qwen => "qwen2",
            Self::Mistral => "mistral_v3",
            Self::Kimi => "kimi_k2",
            Self::Glm4 => "glm4",
            Self::Glm5 => "glm5",
            Self::MiniMax => "minimax_m2",
        }
    }
}

/// Names that agents use for the newest Claude of a size.
const CLAUDE_ALIASES: [&str; 5] = ["fable", "haiku", "mythos", "opus", "sonnet"];

/// Name prefixes by family, the longer before the shorter. A family whose newest models are not known
/// to use its public vocabulary lists only the models that do; the others count as unknown.
const FAMILIES: &[(&str, Tokenizer)] = &[
    ("gpt-3", Tokenizer::Exact(Vocabulary::Cl100k)),
    ("gpt-4o", Tokenizer::Exact(Vocabulary::O200k)),
    ("gpt-4-1", Tokenizer::Exact(Vocabulary::O200k)),
    ("gpt-4-5", Tokenizer::Exact(Vocabulary::O200k)),
    ("gpt-4", Tokenizer::Exact(Vocabulary::Cl100k)),
    ("gpt-", Tokenizer::Exact(Vocabulary::O200k)),
    ("chatgpt", Tokenizer::Exact(Vocabulary::O200k)),
    ("codex", Tokenizer::Exact(Vocabulary::O200k)),
    ("computer-use", Tokenizer::Exact(Vocabulary::O200k)),
    ("o1", Tokenizer::Exact(Vocabulary::O200k)),
    ("o3", Tokenizer::Exact(Vocabulary::O200k)),
    ("o4", Tokenizer::Exact(Vocabulary::O200k)),
    ("gemini", Tokenizer::Gemini),
    ("gemma", Tokenizer::Gemini),
    ("deepseek", Tokenizer::Exact(Vocabulary::DeepSeek)),
    ("kimi", Tokenizer::Exact(Vocabulary::Kimi)),
    ("glm-4", Tokenizer::Exact(Vocabulary::Glm4)),
    ("glm-5", Tokenizer::Exact(Vocabulary::Glm5)),
    ("minimax-m2", Tokenizer::Exact(Vocabulary::MiniMax)),
    ("qwen3-5", Tokenizer::Unknown),
    ("qwen3-6", Tokenizer::Unknown),
    ("qwen3-7", Tokenizer::Unknown),
    ("qwen3-8", Tokenizer::Unknown),
    ("qwen2", Tokenizer::Exact(Vocabulary::Qwen)),
    ("qwen3", Tokenizer::Exact(Vocabulary::Qwen)),
    ("qwq", Tokenizer::Exact(Vocabulary::Qwen)),
    ("llama", Tokenizer::Exact(Vocabulary::Llama3)),
    ("meta-llama", Tokenizer::Exact(Vocabulary::Llama3)),
    ("mistral", Tokenizer::Exact(Vocabulary::Mistral)),
    ("ministral", Tokenizer::Exact(Vocabulary::Mistral)),
    ("magistral", Tokenizer::Exact(Vocabulary::Mistral)),
    ("codestral", Tokenizer::Exact(Vocabulary::Mistral)),
    ("devstral", Tokenizer::Exact(Vocabulary::Mistral)),
    ("pixtral", Tokenizer::Exact(Vocabulary::Mistral)),
];

/// Reads the version out of a Claude name. One without a version is the newest: its tokenizer counts
/// more, and too high a count is the safe mistake.
fn claude_generation(name: &str) -> ClaudeGeneration {
    let mut numbers = name.split('-').filter_map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(u32::MAX), numbers.next().unwrap_or(0));
    if version < (4, 7) { ClaudeGeneration::UpToOpus46 } else { ClaudeGeneration::FromOpus47 }
}

#[cfg(test)]
mod tests {
    use super::{ClaudeGeneration, Tokenizer, Vocabulary};

    #[track_caller]
    fn check(tokenizer: Tokenizer, models: &[&str]) {
        for model in models {
            assert_eq!(Tokenizer::for_model(model), tokenizer, "{model}");
        }
    }

    #[test]
    fn openai_models_since_gpt_4o_use_o200k() {
        check(
            Tokenizer::Exact(Vocabulary::O200k),
            &[
                "gpt-4o", "GPT-4o-mini", "gpt-4.1", "gpt-4.1-nano-2025-04-14", "gpt-5",
                "openai/gpt-5.2-codex", "gpt-5.6-sol", "gpt-6.1-terra", "o1", "o3-mini",
                "o4-mini-2025-04-16", "codex-mini-latest", "azure/gpt-4o-2024-08-06",
                "ft:gpt-4o:my-org::abc123", "chatgpt-4o-latest", "gpt-oss-120b",
            ],
        );
    }

    #[test]
    fn older_openai_models_use_cl100k() {
        check(
            Tokenizer::Exact(Vocabulary::Cl100k),
            &["gpt-4", "gpt-4-turbo-2024-04-09", "gpt-4-32k", "gpt-3.5-turbo", "gpt-35-turbo"],
        );
    }

    #[test]
    fn claude_up_to_opus_4_6_is_one_generation() {
        check(
            Tokenizer::Claude(ClaudeGeneration::UpToOpus46),
            &[
                "claude-3-5-sonnet-20241022",
                "claude-3-opus-latest",
                "claude-sonnet-4",
                "claude-opus-4@20250514",
                "claude-sonnet-4-20250514",
                "claude-sonnet-4-5-20250929",
                "anthropic/claude-sonnet-4.5:thinking",
                "us.anthropic.claude-opus-4-5-20251101-v1:0",
                "claude-opus-4-6",
                "claude-opus-4-6[1m]",
                "claude-haiku-4-5",
                "openrouter/anthropic/claude-3.7-sonnet",
                "claude-2.1",
            ],
        );
    }

    #[test]
    fn claude_from_opus_4_7_on_and_without_a_version_is_the_newer_one() {
        check(
            Tokenizer::Claude(ClaudeGeneration::FromOpus47),
            &[
                "claude-opus-4-7",
                "anthropic/claude-opus-4.8",
                "claude-sonnet-5",
                "claude-opus-5-5",
                "claude-fable-5-1",
                "claude-haiku-5.5",
                "vertex_ai/claude-mythos-5-1@20261001",
                "claude",
                "sonnet",
                "opus",
            ],
        );
    }

    #[test]
    fn gemini_has_its_own_estimate() {
        check(
            Tokenizer::Gemini,
            &["gemini-2.5-pro", "models/gemini-3.1-pro-preview", "google/gemini-3.8-flash"],
        );
    }

    #[test]
    fn open_models_use_their_public_vocabulary() {
        check(
            Tokenizer::Exact(Vocabulary::DeepSeek),
            &["deepseek-chat", "deepseek-ai/DeepSeek-V3.2", "deepseek-v4-pro"],
        );
        check(Tokenizer::Exact(Vocabulary::Kimi), &["kimi-k2-0905-preview", "moonshotai/Kimi-K3"]);
        check(Tokenizer::Exact(Vocabulary::Glm5), &["GLM-5.3", "z-ai/glm-5"]);
        check(Tokenizer::Exact(Vocabulary::Qwen), &["Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen2.5-72b"]);
        check(Tokenizer::Exact(Vocabulary::Mistral), &["devstral-2512", "mistral-large-latest"]);
        check(Tokenizer::Exact(Vocabulary::MiniMax), &["MiniMax-M2.7"]);
    }

    #[test]
    fn what_is_not_known_is_said_to_be_unknown() {
        check(Tokenizer::Unknown, &["", "grok-4.7", "my-own-model", "qwen3.8-max", "minimax-m3"]);
        assert!(Tokenizer::Unknown.exactness().guard() > 1.0);
    }
}
