//! What a tool is for. Takes the name of a tool as any agent spells it; gives its kind. Never looks at a result: what a
//! call does is told by the call.
//!
//! Names are compared without case, underscores, dashes and the prefix of an MCP server (`mcp__files__read_file`,
//! `ReadFile`, `read-file` are one). A new name is one row in [`NAMES`].

use Manner::{Editor, LastingShell, Patch, Plain, Session, Shell};

use super::tool::ToolKind::{
    self, Ask, Build, Delete, Edit, Git, List, Other, Read, Recall, Run, Search, SubAgent, Test, Think, Todo,
    Web, Write,
};

/// How a call of a tool is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It always does the same.
    Plain(ToolKind),
    /// It runs a shell command; the next call starts where the session began.
    Shell,
    /// It runs a shell command in a shell that goes on: a `cd` lasts.
    LastingShell,
    /// It goes on with a running command.
    Session,
    /// It takes a command such as `view` or `str_replace`, with a path.
    Editor,
    /// It takes a patch.
    Patch,
}

/// Tool names, folded as [`folded`] does, and how their calls are read.
const NAMES: &[(&str, Manner)] = &[
    // Shells: Claude Code, Codex, Gemini CLI, OpenHands, Cline, goose, Cursor, Copilot, pi, opencode.
    ("bash", Shell),
    ("shell", Shell),
    ("exec", Shell),
    ("sh", Shell),
    ("terminal", LastingShell),
    ("execcommand", Shell),
    ("shellcommand", Shell),
    ("containerexec", Shell),
    ("localshell", Shell),
    ("localshellcall", Shell),
    ("runshellcommand", Shell),
    ("runshell", Shell),
    ("executebash", LastingShell),
    ("executecommand", Shell),
    ("runcommand", Shell),
    ("runterminalcmd", LastingShell),
    ("runterminalcommand", LastingShell),
    ("runinterminal", LastingShell),
    ("developershell", Shell),
    ("powershell", Shell),
    ("cmd", Shell),
    ("commandexecute", Shell),
    ("executeshellcommand", Shell),
    ("bashtool", LastingShell),
    ("process", Shell),
    ("writestdin", Session),
    ("bashoutput", Session),
    ("readbash", Session),
    ("writebash", Session),
    ("stopbash", Session),
    ("listbash", Session),
    ("killshell", Session),
    ("killbash", Session),
    ("taskoutput", Session),
    ("getterminaloutput", Session),
    ("wait", Session),
    // Editors.
    ("strreplaceeditor", Editor),
    ("strreplacebasededittool", Editor),
    ("texteditor", Editor),
    ("texteditor20250124", Editor),
    ("texteditor20250728", Editor),
    ("fileeditor", Editor),
    ("developertexteditor", Editor),
    ("applypatch", Patch),
    ("applydiff", Plain(Edit)),
    ("patch", Patch),
    // Reading.
    ("read", Plain(Read)),
    ("readfile", Plain(Read)),
    ("readtextfile", Plain(Read)),
    ("readmediafile", Plain(Read)),
    ("readmultiplefiles", Plain(Read)),
    ("readmanyfiles", Plain(Read)),
    ("readfiles", Plain(Read)),
    ("view", Plain(Read)),
    ("viewfile", Plain(Read)),
    ("viewimage", Plain(Read)),
    ("viewcodeitem", Plain(Read)),
    ("open", Plain(Read)),
    ("openfile", Plain(Read)),
    ("cat", Plain(Read)),
    ("getfilecontents", Plain(Read)),
    ("getfileinfo", Plain(List)),
    ("notebookread", Plain(Read)),
    ("goto", Plain(Read)),
    ("scrollup", Plain(Read)),
    ("scrolldown", Plain(Read)),
    ("skill", Plain(Read)),
    ("readnotebook", Plain(Read)),
    ("listmcpresources", Plain(List)),
    ("readmcpresource", Plain(Read)),
    ("accessmcpresource", Plain(Read)),
    ("getdiagnostics", Plain(Build)),
    ("diagnostics", Plain(Build)),
    ("lspdiagnostics", Plain(Build)),
    ("readlints", Plain(Build)),
    ("geterrors", Plain(Build)),
    // Writing and editing.
    ("write", Plain(Write)),
    ("writefile", Plain(Write)),
    ("writetofile", Plain(Write)),
    ("create", Plain(Write)),
    ("createfile", Plain(Write)),
    ("createorupdatefile", Plain(Write)),
    ("savefile", Plain(Write)),
    ("newfile", Plain(Write)),
    ("createdirectory", Plain(Write)),
    ("edit", Plain(Edit)),
    ("editfile", Plain(Edit)),
    ("multiedit", Plain(Edit)),
    ("multieditfile", Plain(Edit)),
    ("replace", Plain(Edit)),
    ("replaceinfile", Plain(Edit)),
    ("strreplace", Plain(Edit)),
    ("replacestringinfile", Plain(Edit)),
    ("multireplacestringinfile", Plain(Edit)),
    ("inserteditintofile", Plain(Edit)),
    ("searchandreplace", Plain(Edit)),
    ("searchreplace", Plain(Edit)),
    ("insert", Plain(Edit)),
    ("insertcontent", Plain(Edit)),
    ("appendtofile", Plain(Edit)),
    ("notebookedit", Plain(Edit)),
    ("editnotebook", Plain(Edit)),
    ("reapply", Plain(Edit)),
    ("undoedit", Plain(Edit)),
    ("movefile", Plain(Edit)),
    ("renamefile", Plain(Edit)),
    ("delete", Plain(Delete)),
    ("deletefile", Plain(Delete)),
    ("removefile", Plain(Delete)),
    // Searching and listing.
    ("grep", Plain(Search)),
    ("greptool", Plain(Search)),
    ("grepsearch", Plain(Search)),
    ("ripgrep", Plain(Search)),
    ("rg", Plain(Search)),
    ("search", Plain(Search)),
    ("searchfiles", Plain(Search)),
    ("searchfilecontent", Plain(Search)),
    ("searchcode", Plain(Search)),
    ("searchtext", Plain(Search)),
    ("searchdir", Plain(Search)),
    ("searchfile", Plain(Search)),
    ("codebasesearch", Plain(Search)),
    ("codesearch", Plain(Search)),
    ("semanticsearch", Plain(Search)),
    ("searchcodebase", Plain(Search)),
    ("listcodeusages", Plain(Search)),
    ("toolsearch", Plain(Search)),
    ("lsp", Plain(Search)),
    ("ls", Plain(List)),
    ("list", Plain(List)),
    ("listdir", Plain(List)),
    ("listfiles", Plain(List)),
    ("listdirectory", Plain(List)),
    ("listdirectorywithsizes", Plain(List)),
    ("listallowedirectories", Plain(List)),
    ("listcodedefinitionnames", Plain(List)),
    ("listalloweddirectories", Plain(List)),
    ("directorytree", Plain(List)),
    ("tree", Plain(List)),
    ("glob", Plain(List)),
    ("globtool", Plain(List)),
    ("filesearch", Plain(List)),
    ("globfilesearch", Plain(List)),
    ("findfile", Plain(List)),
    ("findfiles", Plain(List)),
    ("findbyname", Plain(List)),
    ("getrepomap", Plain(List)),
    ("find", Plain(List)),
    // Version control.
    ("git", Plain(Git)),
    ("gitstatus", Plain(Git)),
    ("gitdiff", Plain(Git)),
    ("gitdiffunstaged", Plain(Git)),
    ("gitdiffstaged", Plain(Git)),
    ("gitlog", Plain(Git)),
    ("gitshow", Plain(Git)),
    ("gitadd", Plain(Git)),
    ("gitcommit", Plain(Git)),
    ("gitcheckout", Plain(Git)),
    ("gitbranch", Plain(Git)),
    ("getchangedfiles", Plain(Git)),
    ("fetchpr", Plain(Git)),
    ("getcommitcombinedstatus", Plain(Git)),
    // Running.
    ("runtests", Plain(Test)),
    ("runtest", Plain(Test)),
    ("testfailure", Plain(Test)),
    ("executeipython", Plain(Run)),
    ("executeipythoncell", Plain(Run)),
    ("ipython", Plain(Run)),
    ("python", Plain(Run)),
    ("pythoninterpreter", Plain(Run)),
    ("codeexecution", Plain(Run)),
    ("codeinterpreter", Plain(Run)),
    ("jsrepl", Plain(Run)),
    ("calculate", Plain(Run)),
    // Web.
    ("webfetch", Plain(Web)),
    ("fetch", Plain(Web)),
    ("fetchwebpage", Plain(Web)),
    ("fetchcontent", Plain(Web)),
    ("websearch", Plain(Web)),
    ("websearchcall", Plain(Web)),
    ("googlewebsearch", Plain(Web)),
    ("browser", Plain(Web)),
    ("browse", Plain(Web)),
    ("browseraction", Plain(Web)),
    ("opensimplebrowser", Plain(Web)),
    ("computer", Plain(Web)),
    ("searchweb", Plain(Web)),
    ("exasearch", Plain(Web)),
    ("tavilysearch", Plain(Web)),
    // What trimtab's own server offers, under any name of the server.
    ("recall", Plain(Recall)),
    ("searchhistory", Plain(Recall)),
    ("fileat", Plain(Recall)),
    ("trimtabrecall", Plain(Recall)),
    ("trimtabsearchhistory", Plain(Recall)),
    ("trimtabfileat", Plain(Recall)),
    // Agents, plans, people, thoughts.
    ("task", Plain(SubAgent)),
    ("agent", Plain(SubAgent)),
    ("newtask", Plain(SubAgent)),
    ("delegate", Plain(SubAgent)),
    ("spawnagent", Plain(SubAgent)),
    ("sendinput", Plain(SubAgent)),
    ("runsubagent", Plain(SubAgent)),
    ("dispatchagent", Plain(SubAgent)),
    ("sendmessage", Plain(SubAgent)),
    ("codebaseinvestigator", Plain(SubAgent)),
    ("usesubagents", Plain(SubAgent)),
    ("todowrite", Plain(Todo)),
    ("todoread", Plain(Todo)),
    ("writetodos", Plain(Todo)),
    ("updateplan", Plain(Todo)),
    ("updatetopic", Plain(Todo)),
    ("updatetodolist", Plain(Todo)),
    ("managetodolist", Plain(Todo)),
    ("todo", Plain(Todo)),
    ("tasktracker", Plain(Todo)),
    ("taskcreate", Plain(Todo)),
    ("taskupdate", Plain(Todo)),
    ("tasklist", Plain(Todo)),
    ("taskget", Plain(Todo)),
    ("reportintent", Plain(Todo)),
    ("savememory", Plain(Todo)),
    ("memory", Plain(Todo)),
    ("enterplanmode", Plain(Todo)),
    ("switchmode", Plain(Todo)),
    ("exitplanmode", Plain(Ask)),
    ("planmoderespond", Plain(Ask)),
    ("askuser", Plain(Ask)),
    ("askuserquestion", Plain(Ask)),
    ("askfollowupquestion", Plain(Ask)),
    ("requestuserinput", Plain(Ask)),
    ("question", Plain(Ask)),
    ("attemptcompletion", Plain(Ask)),
    ("finish", Plain(Ask)),
    ("finalanswer", Plain(Ask)),
    ("submit", Plain(Ask)),
    ("taskcomplete", Plain(Ask)),
    ("think", Plain(Think)),
    ("sequentialthinking", Plain(Think)),
];

/// Tells whether a tool of that name runs shell commands.
pub(crate) fn is_shell(name: &str) -> bool {
    matches!(named(name), Some(Shell | LastingShell | Session))
}

/// Tells whether a tool of this name changes files.
pub(crate) fn changes_files(name: &str) -> bool {
    match named(name) {
        Some(Plain(kind)) => kind.changes_files(),
        Some(Editor | Patch) => true,
        Some(Shell | LastingShell | Session) => false,
        None => guessed_for_file(name).is_some_and(ToolKind::changes_files),
    }
}

/// Finds how calls of a tool are read; none for a name that is not in the table.
pub(crate) fn named(name: &str) -> Option<Manner> {
    // Claude Code's shell keeps its directory; the others of that name start anew.
    if name == "Bash" {
        return Some(LastingShell);
    }
    let own = folded(name.trim_start_matches("functions."));
    let find = |key: &str| NAMES.iter().find(|(known, _)| *known == key).map(|(_, manner)| *manner);
    find(&own).or_else(|| find(&folded(bare(name))))
}

/// Tells from its words what a tool of an unknown name is for.
pub(crate) fn guessed(name: &str) -> ToolKind {
    let words = words_of(bare(name));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match () {
        () if has(&[
            "browser", "navigate", "url", "webpage", "website", "web", "http", "crawl", "scrape",
            "screenshot",
        ]) =>
        {
            Web
        }
        () if has(&["git", "commit", "branch", "pull", "pr", "merge"]) => Git,
        () if has(&["test", "tests", "pytest", "jest"]) => Test,
        () if has(&["lint", "build", "compile", "format", "typecheck", "install"]) => Build,
        () if has(&["subagent", "agent", "delegate"]) => SubAgent,
        () if has(&["todo", "todos", "plan", "tasks"]) => Todo,
        () if has(&["think", "thought", "reason", "reflect"]) => Think,
        () if has(&["ask", "question", "confirm", "human", "approval"]) => Ask,
        () if has(&["grep", "search", "query", "lookup", "retrieve"]) => Search,
        () if has(&["ls", "tree", "glob"]) => List,
        () if has(&["shell", "bash", "exec", "execute", "run", "terminal"]) => Run,
        () => Other,
    }
}

/// Tells from its words what a tool does to the file that its arguments name.
pub(crate) fn guessed_for_file(name: &str) -> Option<ToolKind> {
    let words = words_of(bare(name));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match () {
        () if has(&["delete", "remove", "unlink"]) => Some(Delete),
        () if has(&[
            "edit", "replace", "patch", "modify", "update", "insert", "append", "rename", "move",
        ]) =>
        {
            Some(Edit)
        }
        () if has(&["write", "create", "save", "put"]) => Some(Write),
        () if has(&["grep", "search", "find"]) => Some(Search),
        () if has(&["list", "ls", "dir", "directory", "tree", "glob"]) => Some(List),
        () if has(&["read", "get", "view", "open", "cat", "show", "load", "file"]) => Some(Read),
        () => None,
    }
}

/// Returns a name in lower-case letters and digits alone.
fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns the tool's own name, without that of its server.
fn bare(name: &str) -> &str {
    let name = name.rsplit("__").next().filter(|own| !own.is_empty()).unwrap_or(name);
    name.rsplit(['.', '/', ':']).next().unwrap_or(name)
}

/// Splits a name into lower-case words at underscores, dashes and capitals.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower);
        if starts {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
