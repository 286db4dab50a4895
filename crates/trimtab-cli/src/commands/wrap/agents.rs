//! The agents that are known by name, and how each is pointed at another address. Data, and how it is filled in. Never
//! changes a file of the user's.

/// How an agent is pointed at the proxy. `{url}` stands for its address.
pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) about: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// What stands before the arguments that the user gives.
    pub(super) arguments: &'static [&'static str],
    pub(super) folder: Option<Folder>,
}

/// A folder of settings that is read in place of the user's: the same but for one file.
pub(super) struct Folder {
    /// The variable that names the folder.
    pub(super) variable: &'static str,
    /// Where it is without that variable, below the user's home.
    pub(super) usual: &'static str,
    pub(super) file: &'static str,
    /// JSON that is laid over the user's file.
    pub(super) overlay: &'static str,
}

const ANTHROPIC: [(&str, &str); 2] = [("ANTHROPIC_BASE_URL", "{url}"), ("ANTHROPIC_API_BASE", "{url}")];
const OPENAI: [(&str, &str); 2] = [("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_API_BASE", "{url}/v1")];

/// The agents that are known.
pub(super) const AGENTS: &[Agent] = &[
    Agent {
        name: "aider",
        program: "aider",
        about: "OpenAI and Anthropic models by their variables",
        variables: &[OPENAI[0], OPENAI[1], ANTHROPIC[0], ANTHROPIC[1]],
        arguments: &[],
        folder: None,
    },
    Agent {
        name: "claude",
        program: "claude",
        about: "Claude Code, by ANTHROPIC_BASE_URL",
        variables: &[ANTHROPIC[0]],
        arguments: &[],
        folder: None,
    },
    Agent {
        name: "codex",
        program: "codex",
        about: "a provider of its own on the command line; needs OPENAI_API_KEY",
        variables: &[],
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
        folder: None,
    },
    Agent {
        name: "gemini",
        program: "gemini",
        about: "Gemini CLI with a key, by GOOGLE_GEMINI_BASE_URL",
        variables: &[("GOOGLE_GEMINI_BASE_URL", "{url}")],
        arguments: &[],
        folder: None,
    },
    Agent {
        name: "mini-swe-agent",
        program: "mini",
        about: "OpenAI and Anthropic models by their variables",
        variables: &[OPENAI[0], OPENAI[1], ANTHROPIC[0], ANTHROPIC[1]],
        arguments: &[],
        folder: None,
    },
    Agent {
        name: "opencode",
        program: "opencode",
        about: "Anthropic, OpenAI and Google, by OPENCODE_CONFIG_CONTENT",
        variables: &[(
            "OPENCODE_CONFIG_CONTENT",
            r#"{"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}},"google":{"options":{"baseURL":"{url}/v1beta"}}}}"#,
        )],
        arguments: &[],
        folder: None,
    },
    Agent {
        name: "pi",
        program: "pi",
        about: "Anthropic, OpenAI and Google, by a models.json laid over your own",
        variables: &[],
        arguments: &[],
        folder: Some(Folder {
            variable: "PI_CODING_AGENT_DIR",
            usual: ".pi/agent",
            file: "models.json",
            overlay: r#"{"providers":{"anthropic":{"baseUrl":"{url}"},"openai":{"baseUrl":"{url}/v1"},"google":{"baseUrl":"{url}/v1beta"}}}"#,
        }),
    },
];

/// Any other program: the variables that SDKs read.
pub(super) const ANY: Agent = Agent {
    name: "",
    program: "",
    about: "",
    variables: &[
        OPENAI[0],
        OPENAI[1],
        ANTHROPIC[0],
        ANTHROPIC[1],
        ("GOOGLE_GEMINI_BASE_URL", "{url}"),
        ("GEMINI_API_BASE", "{url}"),
    ],
    arguments: &[],
    folder: None,
};

/// Puts the address where it belongs.
pub(super) fn filled(template: &str, url: &str) -> String {
    template.replace("{url}", url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_pointed_at_the_proxy() {
        for agent in AGENTS.iter().chain([&ANY]) {
            let variables = agent.variables.iter().map(|(_, value)| *value);
            let overlay = agent.folder.iter().map(|folder| folder.overlay);
            let templates: Vec<&str> =
                variables.chain(agent.arguments.iter().copied()).chain(overlay).collect();
            assert!(templates.iter().any(|template| template.contains("{url}")), "{}", agent.name);
            for template in
                templates.iter().filter(|template| template.starts_with('{') && template.contains(':'))
            {
                let filled = filled(template, "http://127.0.0.1:1");
                if filled.starts_with('{') {
                    assert!(serde_json::from_str::<serde_json::Value>(&filled).is_ok(), "{filled}");
                }
            }
        }
    }
}
