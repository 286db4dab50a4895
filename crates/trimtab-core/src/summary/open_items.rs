//! What was still to be done. Takes the calls of a range; gives the last state of the agent's list of tasks, written as a whole or
//! task by task, and the question that the model waits for an answer to. Never takes an item for open that the list calls done.

use std::borrow::Cow;

use super::range::FoldRange;
use crate::{
    facts::{CallArguments, Facts, ToolKind, Voice, with_arguments},
    history::{BlockId, BlockKind, History, Role},
    json::Value,
    ledger::OpenItem,
};

/// How many items are listed.
const MOST: usize = 20;

/// Returns what a range leaves open.
pub(super) fn open_items(history: &History, facts: &Facts, range: &FoldRange) -> Option<Vec<OpenItem>> {
    let is_list = |id: &BlockId| {
        let row = facts.row(*id);
        row.is_some_and(|row| row.acts_as == BlockKind::Call && row.tool() == Some(ToolKind::Todo))
    };
    let mut state: Option<Vec<OpenItem>> = None;
    let mut tasks = TaskList::default();
    for block in range.blocks().filter(is_list).filter_map(|id| history.block(id)) {
        let answer = block.partner.and_then(|id| history.block(id)).map(|result| history.block_text(result));
        let list = with_arguments(history, block, |name, given| {
            tasks.take_call(name, given, answer.as_deref().unwrap_or_default());
            listed_items(given)
        });
        state = list.flatten().or(state);
    }
    let state = state.or_else(|| tasks.into_items());
    let question = open_question(history, facts, range);
    if state.is_none() && question.is_none() {
        return None;
    }
    let open = state.unwrap_or_default().into_iter().filter(|item| !is_done(&item.state)).take(MOST);
    Some(open.chain(question).collect())
}

/// Names of the argument that holds the list, of the item's words and of its state.
const LISTS: &[&str] = &["todos", "plan", "tasks", "items", "task_list", "todo_list", "newTodos"];
const TEXTS: &[&str] = &["content", "step", "title", "task", "description", "text", "subject", "name"];
const STATES: &[&str] = &["status", "state"];

/// Tasks that are made and changed one by one.
#[derive(Default)]
struct TaskList(Vec<(String, OpenItem)>);

impl TaskList {
    /// Takes a call that makes or changes one task, with what the tool answered.
    fn take_call(&mut self, name: &str, given: &CallArguments<'_>, answer: &str) {
        let name = name.to_lowercase().replace('_', "");
        let state = given.text("status").map(|state| state.replace('_', " "));
        if name.ends_with("taskcreate") {
            let Some(text) = TEXTS.iter().rev().find_map(|key| given.text(key)) else { return };
            // The tool says the number that it gave the task.
            let told = answer
                .split_once('#')
                .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
            let number: String = told.unwrap_or_else(|| (self.0.len() + 1).to_string());
            let item =
                OpenItem { state: state.unwrap_or_else(|| "pending".to_owned()), text: text.into_owned() };
            self.0.push((number, item));
        } else if let Some(number) = given.text("taskId").or_else(|| given.text("task_id")) {
            let known = self.0.iter_mut().find(|(known, _)| *known == *number);
            if let (Some((_, item)), Some(state)) = (known, state) {
                item.state = state;
            }
        }
    }

    fn into_items(self) -> Option<Vec<OpenItem>> {
        (!self.0.is_empty()).then(|| self.0.into_iter().map(|(_, item)| item).collect())
    }
}

fn listed_items(given: &CallArguments<'_>) -> Option<Vec<OpenItem>> {
    if let CallArguments::Json(value) = given
        && let Some(list) = LISTS.iter().find_map(|key| value.get(key)).filter(|list| list.is_array())
    {
        return Some(list.items().filter_map(parse_item).collect());
    }
    let text = LISTS.iter().find_map(|key| given.text(key)).or_else(|| given.all_arguments())?;
    let boxes: Vec<OpenItem> = text.lines().filter_map(parse_checkbox).collect();
    (!boxes.is_empty()).then_some(boxes)
}

fn parse_item(value: Value<'_>) -> Option<OpenItem> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| value.text(key)).map(Cow::into_owned);
    let text = value.string().map(Cow::into_owned).or_else(|| first(TEXTS))?;
    let done = value.is_flag_set("done") || value.is_flag_set("completed");
    let state = first(STATES).unwrap_or_else(|| if done { "done" } else { "pending" }.to_owned());
    Some(OpenItem { state: state.replace('_', " "), text })
}

fn parse_checkbox(line: &str) -> Option<OpenItem> {
    let line = line.trim_start().trim_start_matches(['-', '*', ' ']);
    let (mark, text) = line.strip_prefix('[')?.split_once(']')?;
    let state = match mark.trim() {
        "" => "pending",
        "-" | "~" | ">" => "in progress",
        "x" | "X" => "done",
        _ => return None,
    };
    Some(OpenItem { state: state.to_owned(), text: text.trim().to_owned() })
}

fn is_done(state: &str) -> bool {
    matches!(
        state.to_lowercase().as_str(),
        "done" | "completed" | "complete" | "cancelled" | "canceled" | "finished" | "deleted"
    )
}

/// Returns the question with which the model's words in a range end, where the user has not answered it in the range.
fn open_question(history: &History, facts: &Facts, range: &FoldRange) -> Option<OpenItem> {
    for id in range.blocks().collect::<Vec<BlockId>>().into_iter().rev() {
        let (Some(row), Some(block)) = (facts.row(id), history.block(id)) else { continue };
        match (row.role, block.kind) {
            (Role::User, _) if row.voice == Some(Voice::Person) && row.acts_as != BlockKind::Result => {
                return None;
            }
            (Role::Assistant, BlockKind::Call) => return None,
            (Role::Assistant, BlockKind::Text) if row.acts_as == BlockKind::Text => {
                let text = history.block_text(block);
                let last = text.trim_end().rsplit('\n').next().unwrap_or_default().trim();
                let item = OpenItem { state: format!("asked at step {}", row.step), text: last.to_owned() };
                return last.ends_with('?').then_some(item);
            }
            _ => {}
        }
    }
    None
}
