//! Tells the format of a request from what stands in it. Takes the outermost value; gives a format, or why this is no
//! request. Never looks at file names, headers or urls, and never takes a list of other things for a conversation: what
//! is not understood must not be counted as a short request.

use super::{LAYOUTS, WireError};
use crate::{history::Format, json::Value};

pub(super) fn detect(root: Value<'_>) -> Result<Format, WireError> {
    let format = format_of(root).ok_or(WireError::NotAConversation)?;
    let key = format.list_key();
    let Some(list) = (if root.is_array() { Some(root) } else { root.get(key) }) else {
        return Err(WireError::NotAConversation);
    };
    check_messages(list, format)?;
    Ok(format)
}

fn format_of(root: Value<'_>) -> Option<Format> {
    let found = if root.is_array() {
        LAYOUTS.iter().find(|layout| (layout.fits_list)(root))
    } else {
        LAYOUTS.iter().find(|layout| (layout.fits)(root))
    };
    found.map(|layout| layout.format)
}

/// Refuses a list in which most items are no messages. A few odd ones are carried as they are.
fn check_messages(list: Value<'_>, format: Format) -> Result<(), WireError> {
    let all = list.items().count();
    let layout = format.layout();
    let strange = list.items().filter(|item| !(layout.is_message)(*item)).count();
    let is_sure = list.items().any(layout.is_known);
    if all == 0 || (is_sure && strange * 2 <= all) {
        return Ok(());
    }
    let strange = if is_sure { strange } else { all };
    Err(WireError::NotMessages { strange, all, expected: layout.message_has })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan;

    fn check(request: &str, expected: Result<Format, &str>) {
        let tape = scan(request.as_bytes()).expect("JSON");
        let found = detect(tape.root(request.as_bytes()).expect("a value"));
        assert_eq!(found.map_err(|fault| fault.to_string()), expected.map_err(str::to_owned), "{request}");
    }

    #[test]
    fn a_list_of_other_things_is_no_request() {
        check(
            r#"{"sessionId":"s","messages":[{"type":"user","content":"Hi"},{"type":"gemini","content":"Yes?"}]}"#,
            Err("not a conversation: 2 of 2 messages have no `role`"),
        );
        check(
            r#"{"messages":["hi",{"role":"user","content":"Hi"},{"id":3}]}"#,
            Err("not a conversation: 2 of 3 messages have no `role`"),
        );
        check(
            r#"{"contents":[{"path":"a.txt","size":3}]}"#,
            Err("not a conversation: 1 of 1 messages have no `parts`"),
        );
        check(
            r#"{"input":[{"type":"file","path":"a.txt"}]}"#,
            Err("not a conversation: 1 of 1 messages have no `role` and no known `type`"),
        );
        check(
            r#"[{"type":"message","text":"a line of a log"}]"#,
            Err("not a conversation: 1 of 1 messages have no `role` and no known `type`"),
        );
    }

    #[test]
    fn a_text_called_input_is_a_request_only_beside_what_requests_have() {
        let refused = WireError::NotAConversation.to_string();
        check(r#"{"input":"src/main.ts","output":"dist"}"#, Err(&refused));
        check(r#"{"model":"gpt-5","input":"Hi"}"#, Ok(Format::Responses));
        check(r#"{"prompt":{"id":"p"},"input":"Hi"}"#, Ok(Format::Responses));
    }

    #[test]
    fn a_few_odd_messages_make_no_other_request() {
        check(r#"{"messages":[{"role":"user","content":"Hi"},{}]}"#, Ok(Format::Chat));
        check(r#"{"messages":[]}"#, Ok(Format::Chat));
        check(r#"{"contents":[]}"#, Ok(Format::Gemini));
        check(
            r#"{"input":[{"type":"item_reference","id":"m"},{"type":"teleport_call"}]}"#,
            Ok(Format::Responses),
        );
    }
}
