"""The clients that `scripts/clients/agents` runs: one row each, with packages in pinned versions.

A Python client names the group whose packages are installed together, because the packages of different
groups cannot be; a Node client needs no group. A new client is one row here and, for a library, one file
in `frameworks`.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import provider

HERE = Path(__file__).resolve().parent
QUESTION = "Add up the values."

# Python packages by group.
WHEELS = {
    "official": (HERE / "requirements.txt").read_text().split(),
    "main": ["openai-agents==0.24.0", "pydantic-ai-slim[openai,anthropic,google]==2.66.0", "google-genai==3.3.0", "agno==3.1.10"],
    "langchain": ["langchain==1.4.7", "langchain-core==1.7.0", "langchain-openai==1.7.3", "langchain-anthropic==1.7.7"],
    "strands": ["strands-agents[openai,anthropic]==1.62.0"],
    "llama-index": [
        "llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3", "autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5",
        "smolagents[openai]==1.26.0",
    ],
    "google-adk": ["google-adk==2.13.0"],
    "crewai": ["crewai==1.15.30"],
    # mini-swe-agent's client asks for mcp without saying so.
    "litellm": ["mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0"],
}
PACKAGES = [
    "@openai/codex@0.166.0",
    "@mariozechner/pi-coding-agent@0.73.1",
    "opencode-ai@1.18.33",
    # opencode looks for ripgrep on the path and would otherwise fetch it.
    "@vscode/ripgrep@1.18.0",
    "@google/gemini-cli@0.61.0",
    "@qwen-code/qwen-code@0.24.4",
    "cline@3.0.65",
    *(f"{name}@{version}" for name, version in json.loads((HERE / "package.json").read_text())["dependencies"].items()),
    "@openai/agents@0.20.0",
    "@google/genai@3.1.0",
    "ai@7.0.170",
    "@ai-sdk/openai@4.0.115",
    "@ai-sdk/anthropic@4.0.102",
    "@ai-sdk/google@4.0.118",
    "zod@4.6.7",
]
# What cannot be run, and why.
ABSENT = {
    "mistral-vibe 3.0.3": "it needs Python 3.12; the others run with 3.11",
    "openhands-sdk 1.58.2": "it needs Python 3.12; the others run with 3.11",
}


@dataclass
class Client:
    """One run: a name to print, the program with its arguments, variables, and files of its home."""

    name: str
    wire: str
    program: str
    arguments: list
    variables: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    # The packages of a Python client.
    group: str | None = None
    # The agent's name for `trimtab wrap`, where it is known to it.
    wrap: str = "client"
    # A budget that the results outgrow; agents have long prompts of their own.
    budget: int = 9000
    # The command by which the model ends the work, where words do not.
    end: str | None = None
    # A fault of trimtab because of which the client fails.
    fault: str | None = None


KEYS = {
    f"{name}_API_KEY": "none" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "GOOGLE_GENERATIVE_AI")
}
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true",
    "AGNO_TELEMETRY": "false", "DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "1",
}


def python(name, wire, group, file, *arguments, fault=None):
    one_key = {key: value for key, value in KEYS.items() if key != "GEMINI_API_KEY"}
    path = HERE / file if file == "sdk.py" else HERE / "frameworks" / file
    return Client(name, wire, "python", [str(path), *arguments], one_key | QUIET, group=group, fault=fault)


def node(name, wire, file, *arguments, fault=None):
    return Client(name, wire, "node", [f"{{node}}/{file}", *arguments], KEYS | QUIET, fault=fault)


def agent(name, wire, program, arguments, variables, files=None, wrap=None, group=None, end=None):
    return Client(name, wire, program, arguments, variables, files or {}, group, wrap or "client", 30000, end)


CODEX = """model = "gpt-5"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
"""
OPENCODE = {".config/opencode/opencode.json": json.dumps({"autoupdate": False, "share": "disabled", "permission": "allow"})}
OPENCODE_QUIET = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE", "PRUNE", "AUTOCOMPACT")
}
GEMINI = json.dumps({
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
})
QWEN = json.dumps({
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
})
MINI = {
    "MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "MSWEA_COST_TRACKING": "ignore_errors",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none",
}
# How mini-swe-agent is told that the work is done.
SUBMIT = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{provider.DONE}'"
PI = ["-p", "--offline", "--provider"]
CLINE_QUIET = {"CLINE_NO_AUTO_UPDATE": "1", "DO_NOT_TRACK": "1", "CLINE_NO_INTERACTIVE": "1", "OPENAI_API_KEY": "none"}
CLINE = (
    'cline auth -p openai-compatible -k none -m gpt-4.1-mini -b "$OPENAI_BASE_URL" > login.txt && '
    f'exec cline -P openai-compatible -m gpt-4.1-mini "{QUESTION}"'
)

CLIENTS = [
    agent("codex", "responses", "codex", ["exec", "--skip-git-repo-check", QUESTION], {"OPENAI_API_KEY": "none"},
          {".codex/config.toml": CODEX}, "codex"),
    agent("pi", "messages", "pi", [*PI, "anthropic", "--model", "claude-sonnet-4-5", QUESTION], {"ANTHROPIC_API_KEY": "none"}, wrap="pi"),
    agent("pi", "responses", "pi", [*PI, "openai", "--model", "gpt-5", QUESTION], {"OPENAI_API_KEY": "none"}, wrap="pi"),
    agent("opencode", "messages", "opencode", ["run", "-m", "anthropic/claude-sonnet-4-5", QUESTION],
          {"ANTHROPIC_API_KEY": "none"} | OPENCODE_QUIET, OPENCODE, "opencode"),
    agent("opencode", "responses", "opencode", ["run", "-m", "openai/gpt-5", QUESTION],
          {"OPENAI_API_KEY": "none"} | OPENCODE_QUIET, OPENCODE, "opencode"),
    agent("gemini-cli", "gemini", "gemini", ["--yolo", "-m", "gemini-2.5-pro", "-p", QUESTION],
          {"GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}, {".gemini/settings.json": GEMINI}, "gemini"),
    agent("mini-swe-agent", "chat", "mini", ["--yolo", "--exit-immediately", "-m", "openai/gpt-5", "-t", QUESTION], MINI,
          wrap="mini-swe-agent", group="litellm", end=SUBMIT),
    agent("qwen-code", "chat", "qwen", ["--yolo", "-m", "qwen3-coder-plus", "-p", QUESTION],
          {"OPENAI_API_KEY": "none", "OPENAI_MODEL": "qwen3-coder-plus"}, {".qwen/settings.json": QWEN}),
    agent("cline", "chat", "sh", ["-c", CLINE], CLINE_QUIET),
    python("anthropic (Python)", "messages", "official", "sdk.py", "messages"),
    python("openai (Python)", "chat", "official", "sdk.py", "chat"),
    python("openai (Python)", "responses", "official", "sdk.py", "responses"),
    node("anthropic (Node)", "messages", "sdk.mjs", "messages"),
    node("openai (Node)", "chat", "sdk.mjs", "chat"),
    node("openai (Node)", "responses", "sdk.mjs", "responses"),
    python("google-genai (Python)", "gemini", "main", "google_genai_client.py"),
    python("google-genai (Python), streamed", "gemini", "main", "google_genai_client.py", "streamed"),
    node("google-genai (Node), streamed", "gemini", "google_genai.mjs"),
    python("openai-agents (Python)", "chat", "main", "openai_agents_client.py", "chat"),
    python("openai-agents (Python), streamed", "responses", "main", "openai_agents_client.py", "responses", "streamed"),
    python("openai-agents (Python), history at the server", "responses", "main", "openai_agents_client.py", "responses", "held"),
    node("openai-agents (Node)", "chat", "openai_agents.mjs", "chat"),
    node("openai-agents (Node)", "responses", "openai_agents.mjs", "responses"),
    python("pydantic-ai", "chat", "main", "pydantic_ai_client.py", "openai-chat:gpt-5"),
    python("pydantic-ai", "responses", "main", "pydantic_ai_client.py", "openai-responses:gpt-5"),
    python("pydantic-ai", "messages", "main", "pydantic_ai_client.py", "anthropic:claude-opus-5"),
    python("pydantic-ai", "gemini", "main", "pydantic_ai_client.py", "google:gemini-2.5-pro"),
    python("langchain", "chat", "langchain", "langchain_client.py", "openai:gpt-4.1"),
    python("langchain", "messages", "langchain", "langchain_client.py", "anthropic:claude-opus-5"),
    python("strands", "chat", "strands", "strands_client.py", "chat"),
    python("strands", "messages", "strands", "strands_client.py", "messages"),
    python("llama-index", "chat", "llama-index", "llama_index_client.py"),
    python("autogen", "chat", "llama-index", "autogen_client.py"),
    python("smolagents", "chat", "llama-index", "smolagents_client.py"),
    python("google-adk", "gemini", "google-adk", "google_adk_client.py"),
    python("agno", "chat", "main", "agno_client.py", "chat"),
    python("agno", "responses", "main", "agno_client.py", "responses"),
    python("litellm", "chat", "litellm", "litellm_client.py", "openai/gpt-4.1"),
    python("litellm", "messages", "litellm", "litellm_client.py", "anthropic/claude-opus-5"),
    python("litellm", "gemini", "litellm", "litellm_client.py", "gemini/gemini-2.5-pro"),
    python("litellm, address without version", "gemini", "litellm", "litellm_client.py", "gemini/gemini-2.5-pro", "bare"),
    python("crewai", "chat", "crewai", "crewai_client.py"),
    node("AI SDK", "responses", "ai_sdk.mjs", "responses"),
    node("AI SDK", "chat", "ai_sdk.mjs", "chat"),
    node("AI SDK, streamed", "messages", "ai_sdk.mjs", "messages", "streamed"),
    node("AI SDK, address as `wrap` names it", "messages", "ai_sdk.mjs", "messages", "bare"),
    node("AI SDK, streamed", "gemini", "ai_sdk.mjs", "gemini", "streamed"),
]
