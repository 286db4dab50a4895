//! The server that agents ask for what was hidden. Takes requests of the Model Context Protocol on standard input; gives answers
//! on standard output and nothing else. Never writes to a conversation: pins and undos are kept for whoever sends its next request.
//! Ends when its input does.

mod bounded_text;
mod source;
mod tools;

use std::sync::Arc;

use anyhow::{Context, Result};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, ServerInitializeError},
    transport::stdio,
};
use trimtab_store::Secrets;

use source::ToolLibrary;
pub(crate) use source::ToolSource;
use tools::{TOOLS, ToolAnswer};

/// What the agent reads about the server as a whole.
const INSTRUCTIONS: &str = "\
Parts of your conversation may be replaced by notes in brackets that end in `trimtab recall HANDLE`. Nothing is lost: call \
`recall` with that handle to read the original, with `lines` or `grep` to read only what you need. `search_history` finds hidden \
or older text of this project by its words, `file_at` shows a file as it was known after a step, `files` lists the files touched, `changelog` lists \
what was done to which file. `pin` keeps a block visible while you need it, `unpin` and `undo` take back a pin or a note.";

/// Answers until standard input ends.
pub(crate) async fn serve(source: ToolSource, secrets: Secrets, most_letters: usize) -> Result<()> {
    let server = McpServer { asked: Arc::new((ToolLibrary { source, secrets }, most_letters)) };
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        // Whoever started it has gone before saying anything: there is nothing to do.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error).context("the client did not begin as the protocol says"),
    };
    running.waiting().await.context("the server stopped")?;
    Ok(())
}

#[derive(Clone)]
struct McpServer {
    asked: Arc<(ToolLibrary, usize)>,
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("trimtab", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool_listing).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let words = format!("there is no tool {}; there are: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(words, None));
        };
        let asked = Arc::clone(&self.asked);
        let arguments = request.arguments.unwrap_or_default();
        // Reading a large conversation takes a while: other requests are answered meanwhile.
        let called = tokio::task::spawn_blocking(move || {
            let (library, most_letters) = &*asked;
            tool.call(library, *most_letters, arguments)
        });
        let answer =
            called.await.map_err(|_| ErrorData::internal_error("the tool stopped before its end", None))?;
        Ok(CallToolResponse::Complete(call_result(answer)))
    }
}

fn tool_listing(tool: &tools::ToolDescription) -> Tool {
    let hints = ToolAnnotations::new().read_only(tool.is_read_only()).idempotent(true).open_world(false);
    let hints = if tool.is_read_only() { hints } else { hints.destructive(false) };
    Tool::new(tool.name, tool.about, tool.argument_schema()).with_annotations(hints)
}

/// What is said about an answer stands apart from it, so that the answer's own text is exact.
fn call_result(answer: Result<ToolAnswer>) -> CallToolResult {
    match answer {
        Ok(ToolAnswer { pictures, text, note }) => {
            let text = Some(text).filter(|_| pictures.is_empty());
            let pictures =
                pictures.into_iter().map(|picture| ContentBlock::image(picture.data, picture.kind));
            CallToolResult::success(
                pictures.chain([text, note].into_iter().flatten().map(ContentBlock::text)).collect(),
            )
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(format!("{error:#}"))]),
    }
}
