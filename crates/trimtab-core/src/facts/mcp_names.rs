//! Which MCP server a tool comes from: [`mcp_server`], by the ways in which clients put the server's name into the tool's.

/// Returns the MCP server that a tool's name names: `mcp__github__search` (Claude Code and most others), `mcp_github_search` (editors),
/// `github__search` and `mcp.github.search`. Nothing for a tool of the client's own.
///
/// ```
/// use trimtab_core::facts::mcp_server;
/// assert_eq!(mcp_server("mcp__github__search_code"), Some("github"));
/// assert_eq!(mcp_server("Read"), None);
/// ```
pub fn mcp_server(tool: &str) -> Option<&str> {
    let server = if let Some(rest) = tool.strip_prefix("mcp__") {
        rest.split("__").next()
    } else if let Some(rest) = tool.strip_prefix("mcp_") {
        rest.split_once('_').map(|(server, _)| server)
    } else if let Some(rest) = tool.strip_prefix("mcp.").or_else(|| tool.strip_prefix("mcp-")) {
        rest.split_once(['.', '-']).map(|(server, _)| server)
    } else {
        tool.split_once("__").map(|(server, _)| server)
    };
    server.filter(|server| !server.is_empty())
}

#[cfg(test)]
mod tests {
    use super::mcp_server;

    #[test]
    fn a_server_is_told_from_a_tool_of_the_clients_own() {
        let names = [
            ("mcp__github__search_code", Some("github")),
            ("mcp__claude_ai_Linear__get_issue", Some("claude_ai_Linear")),
            ("mcp_playwright_browser_click", Some("playwright")),
            ("github__create_issue", Some("github")),
            ("mcp.fs.read_file", Some("fs")),
            ("Read", None),
            ("read_file", None),
            ("apply_patch", None),
            ("__init__", None),
            ("mcp__", None),
            ("", None),
        ];
        for (name, server) in names {
            assert_eq!(mcp_server(name), server, "{name}");
        }
    }
}
