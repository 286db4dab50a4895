//! Anthropic messages that arrive in pieces. Takes blocks in the order a recording has them; gives whole
//! messages: pieces of one answer joined, results of parallel calls in one message and before its text.
//! Never changes a block: each is copied as it was recorded.

use trimtab_core::json::{Array, Object, Value};

/// The messages of a segment so far.
#[derive(Clone, Default)]
pub(super) struct ClaudeMessages {
    all: Vec<ClaudeMessage>,
}

#[derive(Clone)]
struct ClaudeMessage {
    assistant: bool,
    /// The answer's id, by which its pieces find each other.
    id: Option<String>,
    /// The content, where it is one bare string.
    text: Option<Vec<u8>>,
    blocks: Vec<MessageBlock>,
}

#[derive(Clone)]
struct MessageBlock {
    json: Vec<u8>,
    /// The call that a tool result answers.
    answers: Option<String>,
}

impl ClaudeMessages {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Keeps the first messages only.
    pub(super) fn truncate(&mut self, messages: usize) {
        self.all.truncate(messages);
    }

    /// Tells whether an answer of the model is at or after `from`.
    pub(super) fn answered_since(&self, from: usize) -> bool {
        self.all.iter().skip(from).any(|message| message.assistant)
    }

    /// Adds a piece of an answer; returns the number of its message and whether that is new.
    pub(super) fn add_answer(&mut self, id: Option<String>, content: Value<'_>) -> (usize, bool) {
        let same = |message: &ClaudeMessage| message.assistant && id.is_some() && message.id == id;
        // A piece may be written after the results of the pieces before it.
        let known = self.all.iter().rposition(same);
        let index = known.unwrap_or(self.all.len());
        if known.is_none() {
            self.all.push(ClaudeMessage { assistant: true, id, text: None, blocks: Vec::new() });
        }
        if let Some(message) = self.all.get_mut(index) {
            message.add_content(content);
        }
        (index, known.is_none())
    }

    /// Adds what was said to the model; returns the number of its message.
    pub(super) fn add_user(&mut self, content: Value<'_>) -> usize {
        if self.all.last().is_none_or(|message| message.assistant) {
            self.all.push(ClaudeMessage { assistant: false, id: None, text: None, blocks: Vec::new() });
        }
        if let Some(message) = self.all.last_mut() {
            message.add_content(content);
        }
        self.all.len().saturating_sub(1)
    }

    /// Replaces the contents of the results of some calls, as an agent does that clears old results.
    pub(super) fn clear_results(&mut self, calls: &[String], note: &str) {
        let pieces = self.all.iter_mut().flat_map(|message| &mut message.blocks);
        for piece in pieces {
            let Some(call) = piece.answers.as_ref().filter(|call| calls.contains(call)) else { continue };
            let cleared =
                Object::new().text("type", "tool_result").text("tool_use_id", call).text("content", note);
            piece.json = cleared.end();
        }
    }

    /// Writes the messages as JSON texts.
    pub(super) fn write(&self) -> Vec<Vec<u8>> {
        self.all.iter().map(ClaudeMessage::write).collect()
    }
}

impl ClaudeMessage {
    fn add_content(&mut self, content: Value<'_>) {
        if content.is_string() {
            if self.blocks.is_empty() && self.text.is_none() {
                self.text = Some(content.raw().to_vec());
                return;
            }
            self.blocks_from_text();
            self.blocks.push(MessageBlock::from_text(content.raw()));
            return;
        }
        self.blocks_from_text();
        self.blocks.extend(content.items().map(MessageBlock::from_block));
    }

    fn blocks_from_text(&mut self) {
        self.blocks.extend(self.text.take().map(|text| MessageBlock::from_text(&text)));
    }

    fn write(&self) -> Vec<u8> {
        let role = if self.assistant { "assistant" } else { "user" };
        let content = self.text.clone().unwrap_or_else(|| {
            let (results, others): (Vec<&MessageBlock>, Vec<&MessageBlock>) =
                self.blocks.iter().partition(|piece| piece.answers.is_some());
            results.iter().chain(&others).fold(Array::new(), |list, piece| list.raw(&piece.json)).end()
        });
        Object::new().text("role", role).raw("content", &content).end()
    }
}

impl MessageBlock {
    fn from_block(block: Value<'_>) -> MessageBlock {
        let is_result = block.member_is("type", "tool_result");
        let answers = is_result.then(|| block.text("tool_use_id")).flatten();
        MessageBlock { json: block.raw().to_vec(), answers: answers.map(std::borrow::Cow::into_owned) }
    }

    fn from_text(json: &[u8]) -> MessageBlock {
        MessageBlock { json: Object::new().text("type", "text").raw("text", json).end(), answers: None }
    }
}
