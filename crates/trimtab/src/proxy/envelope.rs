//! What stands around a conversation in the body of a request. Takes a body; gives the conversation inside and an [`Envelope`],
//! which puts another conversation in its place and leaves every other byte as it is. Used by `forward` and `retry`.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, de};
use serde_json::value::RawValue;

use super::encoding::RequestEncoding;

/// The key under which Code Assist has a request of Gemini's, beside the model that it is for.
pub(crate) const CODE_ASSIST: &str = "request";

/// The key under which Gemini's `countTokens` may have a request.
pub(crate) const COUNTED: &str = "generateContentRequest";

/// How the body of a request holds its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// The body is the conversation.
    None,
    /// The conversation is the value of this key, in answers that of `response`.
    Always(&'static str),
    /// The conversation may be the value of this key.
    Perhaps(&'static str),
}

/// What was taken away from a body to get at its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    encoding: RequestEncoding,
    /// The bytes before and after the conversation; nothing where the body is the conversation.
    around: Option<(Vec<u8>, Vec<u8>)>,
}

/// A conversation that was taken out of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerConversation {
    pub(crate) conversation: Vec<u8>,
    /// The model that is named beside it.
    pub(crate) model: Option<String>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Takes the conversation out of a decoded body; nothing where the key does not stand there, or not with an object.
pub(crate) fn unwrap_conversation(body: &[u8], key: &str) -> Option<InnerConversation> {
    let Members { model, conversation } = Members::read(body, key)?;
    let start = conversation.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    let (before, rest) = body.split_at_checked(start)?;
    let (conversation, after) = rest.split_at_checked(conversation.len())?;
    conversation.starts_with(b"{").then(|| InnerConversation {
        conversation: conversation.to_vec(),
        model: model.map(Cow::into_owned),
        before: before.to_vec(),
        after: after.to_vec(),
    })
}

impl Envelope {
    /// Returns the envelope of a body that is the conversation, but for its encoding.
    pub(crate) fn with_encoding(encoding: RequestEncoding) -> Envelope {
        Envelope { encoding, around: None }
    }

    /// Returns the same around a conversation that was taken out of its body, and the conversation.
    pub(crate) fn wrap_inner(self, inner: InnerConversation) -> (Envelope, Vec<u8>) {
        let InnerConversation { conversation, before, after, .. } = inner;
        (Envelope { around: Some((before, after)), ..self }, conversation)
    }

    /// Tells whether the body is the conversation, byte for byte.
    pub(crate) fn is_empty(&self) -> bool {
        self.around.is_none() && self.encoding == RequestEncoding::Plain
    }

    /// Puts a conversation in the place of the one that came; nothing where there is none, or it cannot be encoded.
    pub(crate) async fn pack(&self, conversation: Option<Bytes>) -> Option<Bytes> {
        let conversation = conversation?;
        let body = match &self.around {
            None => conversation,
            Some((before, after)) => Bytes::from([before, &conversation[..], after].concat()),
        };
        if self.encoding == RequestEncoding::Plain {
            return Some(body);
        }
        let encoding = self.encoding;
        let encoded = tokio::task::spawn_blocking(move || encoding.encode(&body)).await;
        encoded.ok()?.ok().map(Bytes::from)
    }
}

/// The members of a body that matter here. A body that names one of them twice is not read: servers differ in which they take.
struct Members<'a> {
    model: Option<Cow<'a, str>>,
    conversation: &'a str,
}

impl<'a> Members<'a> {
    fn read(body: &'a [u8], key: &str) -> Option<Members<'a>> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let members = de::Deserializer::deserialize_map(&mut reader, Reader { key }).ok()?;
        reader.end().ok()?;
        members
    }
}

struct Reader<'k> {
    key: &'k str,
}

impl<'de> de::Visitor<'de> for Reader<'_> {
    type Value = Option<Members<'de>>;

    fn expecting(&self, words: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        words.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut model, mut conversation) = (None, None);
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            let value: &'de RawValue = map.next_value()?;
            let is_second = match &*name {
                "model" => model.replace(value.get()).is_some(),
                name if name == self.key => conversation.replace(value.get()).is_some(),
                _ => false,
            };
            if is_second {
                return Err(de::Error::custom("a key stands there twice"));
            }
        }
        let model = model.and_then(|model| Some(serde_json::from_str::<Name<'de>>(model).ok()?.0));
        Ok(conversation.map(|conversation| Members { model, conversation }))
    }
}

/// A text that is copied only where it is written with escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the answer that stands in another under `response`; the answer itself where none does.
pub(crate) fn unwrap_answer(answer: &[u8]) -> &[u8] {
    Members::read(answer, "response").map_or(answer, |members| members.conversation.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(body: &[u8], conversation: &'static str) -> Option<String> {
        let inner = unwrap_conversation(body, CODE_ASSIST)?;
        let (envelope, _) = Envelope::with_encoding(RequestEncoding::Plain).wrap_inner(inner);
        let packed = envelope.pack(Some(Bytes::from_static(conversation.as_bytes())));
        let packed = crate::proxy::start_runtime().unwrap().block_on(packed)?;
        Some(String::from_utf8(packed.to_vec()).unwrap())
    }

    #[test]
    fn a_conversation_is_replaced_and_nothing_else() {
        let body = br#" {"project" : "p", "model":"gemini-\u0033-pro","request": {"contents":[ 1 ]} , "user_prompt_id":"u"} "#;
        let inner = unwrap_conversation(body, CODE_ASSIST).unwrap();
        assert_eq!(inner.conversation, br#"{"contents":[ 1 ]}"#);
        assert_eq!(inner.model.as_deref(), Some("gemini-3-pro"));
        let expected =
            r#" {"project" : "p", "model":"gemini-\u0033-pro","request": {"new":1} , "user_prompt_id":"u"} "#;
        assert_eq!(pack(body, r#"{"new":1}"#).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_not_wrapped_is_told() {
        for body in [
            &br#"{"contents":[]}"#[..],
            br#"{"request":"text"}"#,
            br#"{"request":[]}"#,
            br#"{"request":{}} {"request":{}}"#,
            br#"{"request":{},"request":{}}"#,
            br#"{"request":{},"model":"a","model":"b"}"#,
            br#"{"request":{}"#,
            br#"[{"request":{}}]"#,
            b"",
            b"\xff",
        ] {
            assert_eq!(unwrap_conversation(body, CODE_ASSIST), None, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_model_that_is_no_text_is_not_named() {
        let inner = unwrap_conversation(br#"{"model":7,"request":{}}"#, CODE_ASSIST).unwrap();
        assert_eq!(inner.model, None);
    }

    #[test]
    fn an_answer_is_found_in_its_envelope() {
        assert_eq!(unwrap_answer(br#" {"response": {"a":1}, "traceId":"t"}"#), br#"{"a":1}"#);
        assert_eq!(unwrap_answer(br#"{"usageMetadata":{}}"#), br#"{"usageMetadata":{}}"#);
        assert_eq!(unwrap_answer(b"no json"), b"no json");
    }
}
