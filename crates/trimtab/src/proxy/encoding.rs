//! Compressed bodies. Takes bytes and the name of their encoding; gives them decoded, whole or as they arrive, and encoded
//! again. Never lets a small body become one beyond the limit.

use std::io::{Read, Write};

use flate2::{
    Compression, read::MultiGzDecoder, write::GzEncoder, write::MultiGzDecoder as GzWriter,
    write::ZlibDecoder as ZlibWriter,
};
use hyper::{HeaderMap, header::CONTENT_ENCODING};

/// Level 3 is zstd's own default: fast, and what clients use.
const ZSTD_LEVEL: i32 = 3;

/// How a request is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEncoding {
    Plain,
    Gzip,
    Zstd,
}

/// Why a body could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// It is not what its encoding says.
    Broken,
    /// It is larger than the limit.
    TooLarge,
}

impl RequestEncoding {
    /// Returns the encoding that the headers name; nothing where it is one that is not re-encoded here.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<RequestEncoding> {
        match content_encoding(headers)?.as_str() {
            "" | "identity" => Some(RequestEncoding::Plain),
            "gzip" | "x-gzip" => Some(RequestEncoding::Gzip),
            "zstd" => Some(RequestEncoding::Zstd),
            _ => None,
        }
    }

    /// Decodes a whole body of at most `limit` bytes.
    pub(crate) fn decode(self, body: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
        match self {
            RequestEncoding::Plain => Ok(body.to_vec()),
            RequestEncoding::Gzip => read(MultiGzDecoder::new(body), limit),
            RequestEncoding::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(body).map_err(|_| DecodeError::Broken)?;
                read(decoder, limit)
            }
        }
    }

    /// Encodes a body as the one was that it takes the place of.
    pub(crate) fn encode(self, body: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            RequestEncoding::Plain => Ok(body.to_vec()),
            RequestEncoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::fast());
                encoder.write_all(body)?;
                encoder.finish()
            }
            RequestEncoding::Zstd => zstd::encode_all(body, ZSTD_LEVEL),
        }
    }
}

fn read(decoder: impl Read, limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut body = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(most).read_to_end(&mut body).map_err(|_| DecodeError::Broken)?;
    if body.len() > limit { Err(DecodeError::TooLarge) } else { Ok(body) }
}

/// Returns the one encoding named, in small letters; nothing where there are several.
fn content_encoding(headers: &HeaderMap) -> Option<String> {
    let mut named = headers.get_all(CONTENT_ENCODING).into_iter();
    let first = named
        .next()
        .map_or(Some(String::new()), |value| Some(value.to_str().ok()?.trim().to_ascii_lowercase()));
    if named.next().is_some() { None } else { first }
}

/// Decodes an answer as it arrives.
pub(crate) enum AnswerDecoder {
    Plain,
    Gzip(GzWriter<Vec<u8>>),
    Deflate(ZlibWriter<Vec<u8>>),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
    /// What is not understood is not read.
    Unread,
}

impl AnswerDecoder {
    pub(crate) fn from_headers(headers: &HeaderMap) -> AnswerDecoder {
        let Some(name) = content_encoding(headers) else { return AnswerDecoder::Unread };
        match name.as_str() {
            "" | "identity" => AnswerDecoder::Plain,
            "gzip" | "x-gzip" => AnswerDecoder::Gzip(GzWriter::new(Vec::new())),
            "deflate" => AnswerDecoder::Deflate(ZlibWriter::new(Vec::new())),
            "br" => AnswerDecoder::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(
                Vec::new(),
                4096,
            ))),
            "zstd" => zstd::stream::write::Decoder::new(Vec::new())
                .map_or(AnswerDecoder::Unread, |decoder| AnswerDecoder::Zstd(Box::new(decoder))),
            _ => AnswerDecoder::Unread,
        }
    }

    /// Decodes the next bytes and hands on what comes out; after a fault nothing more does.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut out: impl FnMut(&[u8])) {
        let done = match self {
            AnswerDecoder::Plain => {
                out(bytes);
                return;
            }
            AnswerDecoder::Unread => return,
            AnswerDecoder::Gzip(decoder) => {
                write_and_flush(decoder, bytes).map(|()| out(&std::mem::take(decoder.get_mut())))
            }
            AnswerDecoder::Deflate(decoder) => {
                write_and_flush(decoder, bytes).map(|()| out(&std::mem::take(decoder.get_mut())))
            }
            AnswerDecoder::Brotli(decoder) => {
                write_and_flush(decoder, bytes).map(|()| out(&std::mem::take(decoder.get_mut())))
            }
            AnswerDecoder::Zstd(decoder) => {
                write_and_flush(decoder, bytes).map(|()| out(&std::mem::take(decoder.get_mut())))
            }
        };
        if done.is_err() {
            *self = AnswerDecoder::Unread;
        }
    }
}

fn write_and_flush(decoder: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(encoding: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
        headers
    }

    fn text() -> Vec<u8> {
        (0..5000).flat_map(|number: u32| format!("line {number}\n").into_bytes()).collect()
    }

    fn check(name: &'static str) {
        let encoding = RequestEncoding::from_headers(&headers(name)).unwrap();
        let packed = encoding.encode(&text()).unwrap();
        assert_eq!(encoding.decode(&packed, text().len()), Ok(text()), "{name}");
        assert_eq!(encoding.decode(&packed, text().len() - 1), Err(DecodeError::TooLarge), "{name}");
        let mut decoder = AnswerDecoder::from_headers(&headers(name));
        let mut arrived = Vec::new();
        for bytes in packed.chunks(100) {
            decoder.feed(bytes, |decoded| arrived.extend_from_slice(decoded));
        }
        assert_eq!(arrived, text(), "{name} in pieces");
    }

    #[test]
    fn what_is_encoded_is_decoded_whole_and_in_pieces() {
        check("gzip");
        check("zstd");
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_told() {
        assert_eq!(RequestEncoding::Gzip.decode(b"no", 10), Err(DecodeError::Broken));
        assert_eq!(RequestEncoding::Zstd.decode(b"no", 10), Err(DecodeError::Broken));
    }

    #[test]
    fn other_encodings_are_left_alone() {
        assert_eq!(RequestEncoding::from_headers(&headers("br")), None);
        assert_eq!(RequestEncoding::from_headers(&headers("gzip, zstd")), None);
        assert_eq!(RequestEncoding::from_headers(&HeaderMap::new()), Some(RequestEncoding::Plain));
    }

    #[test]
    fn brotli_is_read_as_it_arrives() {
        // "data: 1" in one uncompressed meta-block: made by hand from RFC 7932.
        let packed = [0x0b, 0x03, 0x80, b'd', b'a', b't', b'a', b':', b' ', b'1', 0x03];
        let mut decoder = AnswerDecoder::from_headers(&headers("br"));
        let mut arrived = Vec::new();
        packed.iter().for_each(|byte| decoder.feed(&[*byte], |decoded| arrived.extend_from_slice(decoded)));
        assert_eq!(arrived, b"data: 1");
    }
}
