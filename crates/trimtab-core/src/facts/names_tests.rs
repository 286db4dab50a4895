//! Names of tools as agents spell them, and how their calls are read.

use super::*;

fn check(names: &[&str], expected: CallManner) {
    for name in names {
        assert_eq!(manner_by_name(name), Some(expected), "{name}");
    }
}

#[test]
fn the_names_of_each_kind_of_tool_are_known() {
    check(
        &[
            "Read",
            "read",
            "read_file",
            "ReadFile",
            "readFile",
            "view",
            "view_file",
            "open_file",
            "read_text_file",
            "mcp__filesystem__read_file",
            "filesystem.read_multiple_files",
            "read_many_files",
            "NotebookRead",
            "view_image",
        ],
        Plain(Read),
    );
    check(
        &[
            "Write", "write", "write_file", "write_to_file", "create_file", "create",
            "mcp__fs__create_directory", "save_file",
        ],
        Plain(Write),
    );
    check(
        &[
            "Edit", "edit", "edit_file", "MultiEdit", "replace", "replace_in_file", "apply_diff",
            "search_replace", "replace_string_in_file", "insert_edit_into_file", "insert_content",
            "NotebookEdit", "multi_edit",
        ],
        Plain(Edit),
    );
    check(&["delete_file", "mcp__fs__delete_file", "remove_file"], Plain(Delete));
    check(
        &[
            "Grep", "grep", "grep_search", "search_file_content", "search_files", "codebase_search",
            "mcp__github__search_code", "ripgrep",
        ],
        Plain(Search),
    );
    check(
        &[
            "Glob", "glob", "LS", "ls", "list_dir", "list_directory", "list_files", "directory_tree",
            "file_search", "find_file",
        ],
        Plain(List),
    );
    check(&["git_status", "mcp__git__git_diff", "git_commit", "git_log"], Plain(Git));
    check(
        &[
            "WebFetch", "web_fetch", "webfetch", "fetch", "mcp__fetch__fetch", "WebSearch",
            "google_web_search", "browser_action",
        ],
        Plain(Web),
    );
    check(&["Task", "task", "new_task", "Agent", "spawn_agent"], Plain(SubAgent));
    check(
        &[
            "TodoWrite", "todowrite", "update_plan", "write_todos", "TaskCreate", "TaskUpdate",
            "manage_todo_list",
        ],
        Plain(Todo),
    );
    check(
        &[
            "AskUserQuestion", "ask_followup_question", "ask_user", "attempt_completion", "finish",
            "ExitPlanMode",
        ],
        Plain(Ask),
    );
    check(&["think", "Think", "mcp__seq__sequentialthinking"], Plain(Think));
    check(
        &[
            "bash", "shell", "exec_command", "run_shell_command", "execute_command",
            "functions.exec_command", "local_shell", "container.exec", "developer__shell",
        ],
        Shell,
    );
    check(&["Bash", "execute_bash", "terminal", "run_terminal_cmd", "run_in_terminal"], LastingShell);
    check(&["write_stdin", "BashOutput", "KillShell", "read_bash", "stop_bash"], Session);
    check(&["str_replace_editor", "str_replace_based_edit_tool", "developer__text_editor"], Editor);
    check(&["apply_patch", "applyPatch"], Patch);
    assert_eq!(manner_by_name("get_reservation_details"), None);
}

#[test]
fn unknown_names_are_told_by_their_words() {
    let told = |name: &str, expected: ToolKind| assert_eq!(guess_tool_kind(name), expected, "{name}");
    told("browser_navigate", Web);
    told("mcp__playwright__browserTakeScreenshot", Web);
    told("run_unit_tests", Test);
    told("search_direct_flight", Search);
    told("createPullRequest", Git);
    told("cancel_reservation", Other);
    assert_eq!(guessed_for_file("fs_append_lines"), Some(Edit));
    assert_eq!(guessed_for_file("getContents"), Some(Read));
    assert_eq!(guessed_for_file("frobnicate"), None);
}
