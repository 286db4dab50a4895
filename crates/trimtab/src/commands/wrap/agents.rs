//! The agents that are known by name ([`AGENTS`]), and how each is pointed at the proxy. Data, and how it is filled in. Never
//! changes a file of the user's.

/// How an agent is pointed at the proxy. `{url}` stands for its address, `{file}` for the path of the agent's file.
pub(in crate::commands) struct AgentSetup {
    pub(in crate::commands) name: &'static str,
    pub(in crate::commands) program: &'static str,
    pub(super) about: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// What precedes the arguments that the user gives.
    pub(super) arguments: &'static [&'static str],
    /// A file that the arguments name.
    pub(super) file: Option<AgentFile>,
    /// Commands of the agent that ask no model and must be its first argument: they are run as they are given.
    pub(super) plain_commands: &'static [&'static str],
    /// Variables without which its requests go elsewhere.
    pub(super) needs: &'static [&'static str],
    /// Why none of its requests may have reached the proxy, and what to do.
    pub(super) if_silent: &'static str,
}

/// A file that an agent reads while it runs. It holds an address and nothing of the user's.
pub(super) struct AgentFile {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

const ANTHROPIC: [(&str, &str); 2] = [("ANTHROPIC_BASE_URL", "{url}"), ("ANTHROPIC_API_BASE", "{url}")];
const OPENAI: [(&str, &str); 2] = [("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_API_BASE", "{url}/v1")];

/// What most agents share.
const PLAIN: AgentSetup = AgentSetup {
    name: "",
    program: "",
    about: "",
    variables: &[],
    arguments: &[],
    file: None,
    plain_commands: &[],
    needs: &[],
    if_silent: "",
};

/// The agents that are known.
pub(in crate::commands) const AGENTS: &[AgentSetup] = &[
    AgentSetup {
        name: "aider",
        program: "aider",
        about: "OpenAI and Anthropic models by their variables",
        variables: &[OPENAI[0], OPENAI[1], ANTHROPIC[0], ANTHROPIC[1]],
        if_silent: "aider reads OPENAI_API_BASE and ANTHROPIC_API_BASE: choose an OpenAI or Anthropic model, and set no base URL in .aider.conf.yml",
        ..PLAIN
    },
    AgentSetup {
        name: "claude",
        program: "claude",
        about: "Claude Code, by ANTHROPIC_BASE_URL",
        variables: &[ANTHROPIC[0]],
        if_silent: "Claude Code reads ANTHROPIC_BASE_URL: a setting `env.ANTHROPIC_BASE_URL` in its settings.json comes first, and CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_USE_VERTEX go elsewhere",
        ..PLAIN
    },
    AgentSetup {
        name: "codex",
        program: "codex",
        about: "by its command line, as its own provider; needs OPENAI_API_KEY",
        arguments: &[
            "-c",
            "model_provider=\"trimtab\"",
            "-c",
            "model_providers.trimtab.name=\"trimtab\"",
            "-c",
            "model_providers.trimtab.base_url=\"{url}/v1\"",
            "-c",
            "model_providers.trimtab.env_key=\"OPENAI_API_KEY\"",
            "-c",
            "model_providers.trimtab.wire_api=\"responses\"",
        ],
        needs: &["OPENAI_API_KEY"],
        if_silent: "codex needs OPENAI_API_KEY here: a login with a ChatGPT subscription is not used",
        ..PLAIN
    },
    AgentSetup {
        name: "gemini",
        program: "gemini",
        about: "Gemini CLI with a key, by GOOGLE_GEMINI_BASE_URL",
        variables: &[("GOOGLE_GEMINI_BASE_URL", "{url}")],
        needs: &["GEMINI_API_KEY"],
        if_silent: "Gemini CLI reads GOOGLE_GEMINI_BASE_URL only with GEMINI_API_KEY: requests of a login with a Google account go elsewhere",
        ..PLAIN
    },
    AgentSetup {
        name: "mini-swe-agent",
        program: "mini",
        about: "OpenAI and Anthropic models by their variables",
        variables: &[OPENAI[0], OPENAI[1], ANTHROPIC[0], ANTHROPIC[1]],
        if_silent: "mini-swe-agent reads OPENAI_API_BASE and ANTHROPIC_API_BASE: choose an OpenAI or Anthropic model",
        ..PLAIN
    },
    AgentSetup {
        name: "opencode",
        program: "opencode",
        about: "Anthropic, OpenAI and Google, by OPENCODE_CONFIG_CONTENT",
        variables: &[(
            "OPENCODE_CONFIG_CONTENT",
            r#"{"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}},"google":{"options":{"baseURL":"{url}/v1beta"}}}}"#,
        )],
        if_silent: "opencode goes through trimtab with the providers anthropic, openai and google and an API key: requests of other providers and of a subscription go elsewhere",
        ..PLAIN
    },
    AgentSetup {
        name: "pi",
        program: "pi",
        about: "Anthropic, OpenAI and Google, by an extension",
        arguments: &["-e", "{file}"],
        file: Some(AgentFile {
            name: "trimtab.mjs",
            text: r#"export default function (pi) {
  pi.registerProvider("anthropic", { baseUrl: "{url}" });
  pi.registerProvider("openai", { baseUrl: "{url}/v1" });
  pi.registerProvider("google", { baseUrl: "{url}/v1beta" });
}
"#,
        }),
        plain_commands: &["install", "remove", "uninstall", "update", "list", "config"],
        if_silent: "pi goes through trimtab with the providers anthropic, openai and google: requests of others, such as openai-codex and github-copilot (subscriptions), go elsewhere",
        ..PLAIN
    },
];

/// Any other program: the variables that SDKs read.
pub(super) const ANY: AgentSetup = AgentSetup {
    variables: &[
        OPENAI[0],
        OPENAI[1],
        ANTHROPIC[0],
        ANTHROPIC[1],
        ("GOOGLE_GEMINI_BASE_URL", "{url}"),
        ("GEMINI_API_BASE", "{url}"),
    ],
    if_silent: "trimtab set OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GOOGLE_GEMINI_BASE_URL: the program may read its address from another place, or log in with a subscription",
    ..PLAIN
};

/// Puts an address where it belongs.
pub(super) fn fill_url(template: &str, url: &str) -> String {
    template.replace("{url}", url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_pointed_at_the_proxy_and_has_words_for_silence() {
        for agent in AGENTS.iter().chain([&ANY]) {
            let variables = agent.variables.iter().map(|(_, value)| *value);
            let text = agent.file.iter().map(|file| file.text);
            let templates: Vec<&str> = variables.chain(agent.arguments.iter().copied()).chain(text).collect();
            assert!(templates.iter().any(|template| template.contains("{url}")), "{}", agent.name);
            assert_eq!(
                agent.file.is_some(),
                agent.arguments.contains(&"{file}"),
                "{} reads its file",
                agent.name
            );
            assert!(!agent.if_silent.is_empty(), "{}", agent.name);
            for template in templates.iter().filter(|template| template.starts_with("{\"")) {
                let filled = fill_url(template, "http://127.0.0.1:1");
                assert!(serde_json::from_str::<serde_json::Value>(&filled).is_ok(), "{filled}");
            }
        }
    }
}
