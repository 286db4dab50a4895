//! Where each agent keeps its sessions: [`AGENTS`]. Data only. `~` is the user's folder, `$NAME` an environment variable, `{editor}` each
//! of [`EDITORS`]. Places whose variable is not set do not count.

use super::System::{self, Linux, MacOs, Windows};

/// Where an agent keeps its sessions.
#[derive(Debug)]
pub(crate) struct AgentPlaces {
    /// As recordings name it.
    pub(crate) name: &'static str,
    /// As people name it.
    pub(crate) title: &'static str,
    pub(super) places: &'static [Place],
    pub(super) file: FileName,
    /// Sessions that cannot be read where they are.
    pub(super) elsewhere: &'static [Elsewhere],
}

/// A folder, on some systems.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) on: &'static [System],
    pub(super) at: &'static str,
}

/// How the names of session files begin and end.
#[derive(Debug)]
pub(super) struct FileName {
    begins: &'static str,
    ends: &'static [&'static str],
}

impl FileName {
    pub(super) fn fits(&self, name: &str) -> bool {
        name.starts_with(self.begins) && self.ends.iter().any(|end| name.ends_with(end))
    }
}

/// A place that holds sessions in a form which is not read.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(super) places: &'static [Place],
    /// What it is, and what to do.
    pub(crate) remedy: &'static str,
}

/// Editors that run extensions of VS Code, as their folders are named.
pub(super) const EDITORS: &[&str] =
    &["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Kiro", "Positron"];

const ALL: &[System] = &[Linux, MacOs, Windows];
const UNIX: &[System] = &[Linux, MacOs];

const fn everywhere(at: &'static str) -> Place {
    Place { on: ALL, at }
}

const fn on(on: &'static [System], at: &'static str) -> Place {
    Place { on, at }
}

/// The agents, the most used first.
pub(crate) const AGENTS: &[AgentPlaces] = &[
    AgentPlaces {
        name: "claude-code",
        title: "Claude Code",
        places: &[
            everywhere("$CLAUDE_CONFIG_DIR/projects"),
            everywhere("~/.claude/projects"),
            on(UNIX, "~/.config/claude/projects"),
        ],
        file: FileName { begins: "", ends: &[".jsonl"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "codex",
        title: "Codex",
        places: &[
            everywhere("$CODEX_HOME/sessions"),
            everywhere("$CODEX_HOME/archived_sessions"),
            everywhere("~/.codex/sessions"),
            everywhere("~/.codex/archived_sessions"),
        ],
        file: FileName { begins: "rollout-", ends: &[".jsonl"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "gemini-cli",
        title: "Gemini CLI",
        places: &[everywhere("$GEMINI_CLI_HOME/.gemini/tmp"), everywhere("~/.gemini/tmp")],
        file: FileName { begins: "session-", ends: &[".json", ".jsonl"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "copilot-cli",
        title: "Copilot CLI",
        places: &[everywhere("$COPILOT_HOME/session-state"), everywhere("~/.copilot/session-state")],
        file: FileName { begins: "events", ends: &[".jsonl"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "pi",
        title: "pi",
        places: &[
            everywhere("$PI_CODING_AGENT_SESSION_DIR"),
            everywhere("$PI_CODING_AGENT_DIR/sessions"),
            everywhere("~/.pi/agent/sessions"),
        ],
        file: FileName { begins: "", ends: &[".jsonl"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "cline-cli",
        title: "Cline",
        places: &[
            everywhere("$CLINE_SESSION_DATA_DIR"),
            everywhere("$CLINE_DATA_DIR/sessions"),
            everywhere("$CLINE_DIR/data/sessions"),
            everywhere("~/.cline/data/sessions"),
        ],
        file: FileName { begins: "", ends: &[".messages.json"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "cline",
        title: "Cline (before 4.0)",
        places: &[
            everywhere("$CLINE_DATA_DIR/tasks"),
            everywhere("$CLINE_DIR/data/tasks"),
            everywhere("~/.cline/data/tasks"),
            on(&[Linux], "$XDG_CONFIG_HOME/{editor}/User/globalStorage/saoudrizwan.claude-dev/tasks"),
            on(&[Linux], "~/.config/{editor}/User/globalStorage/saoudrizwan.claude-dev/tasks"),
            on(UNIX, "~/.vscode-server/data/User/globalStorage/saoudrizwan.claude-dev/tasks"),
            on(
                &[MacOs],
                "~/Library/Application Support/{editor}/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ),
            on(&[Windows], "$APPDATA/{editor}/User/globalStorage/saoudrizwan.claude-dev/tasks"),
        ],
        file: FileName { begins: "api_conversation_history", ends: &[".json"] },
        elsewhere: &[],
    },
    AgentPlaces {
        name: "opencode",
        title: "opencode",
        places: &[],
        file: FileName { begins: "", ends: &[] },
        elsewhere: &[Elsewhere {
            places: &[
                everywhere("$OPENCODE_DB"),
                everywhere("$XDG_DATA_HOME/opencode/opencode.db"),
                everywhere("~/.local/share/opencode/opencode.db"),
                on(&[Windows], "$LOCALAPPDATA/opencode/opencode.db"),
                everywhere("$XDG_DATA_HOME/opencode/storage/session"),
                everywhere("~/.local/share/opencode/storage/session"),
            ],
            remedy: "opencode keeps its sessions in a database: `opencode export SESSION > session.json` writes one as a file, \
                which can be named",
        }],
    },
    AgentPlaces {
        name: "openhands",
        title: "OpenHands",
        places: &[],
        file: FileName { begins: "", ends: &[] },
        elsewhere: &[Elsewhere {
            places: &[everywhere("~/.openhands/sessions")],
            remedy: "OpenHands keeps each event in a file: `jq -c . $(ls -v ~/.openhands/sessions/ID/events/*.json) > session.jsonl` \
                makes one file of a session, which can be named",
        }],
    },
    AgentPlaces {
        name: "mini-swe-agent",
        title: "mini-swe-agent",
        places: &[
            everywhere("$MSWEA_GLOBAL_CONFIG_DIR"),
            on(&[Linux], "$XDG_CONFIG_HOME/mini-swe-agent"),
            on(&[Linux], "~/.config/mini-swe-agent"),
            on(&[MacOs], "~/Library/Application Support/mini-swe-agent"),
            on(&[Windows], "$LOCALAPPDATA/mini-swe-agent"),
        ],
        file: FileName { begins: "", ends: &[".traj.json"] },
        elsewhere: &[],
    },
];
