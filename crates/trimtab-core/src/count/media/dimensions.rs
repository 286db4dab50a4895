//! Reads how large an image is. Takes base64 text, gives width and height from the headers of PNG,
//! GIF, WebP and JPEG. Never decodes pixels, never looks past the head.

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimensions {
    pub(super) width: u64,
    pub(super) height: u64,
}

/// How much of an image is decoded, in bytes: a JPEG may carry a thumbnail and a colour profile, of
/// up to 64 KB a segment, before its size.
const HEAD_BYTES: usize = 256 * 1024;

/// Returns the size of an image in base64, if it is of a known kind.
pub(super) fn image_dimensions(base64: &str) -> Option<Dimensions> {
    // All kinds but JPEG say their size in the first 30 bytes.
    let mut head = decode_base64(base64, 32);
    if head.starts_with(b"\xFF\xD8") {
        head = decode_base64(base64, HEAD_BYTES);
    }
    let size = imagesize::blob_size(&head).ok()?;
    Some(Dimensions { width: size.width.try_into().ok()?, height: size.height.try_into().ok()? })
}

/// Decodes up to `limit` bytes of base64, plain or URL-safe, up to the first character that is neither
/// base64 nor white space.
fn decode_base64(base64: &str, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut have) = (0u32, 0);
    for character in base64.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let six = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(six);
        have += 6;
        if have >= 8 {
            have -= 8;
            let [.., byte] = (bits >> have).to_be_bytes();
            bytes.push(byte);
            if bytes.len() == limit {
                break;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Dimensions, decode_base64, image_dimensions};

    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fn encode(bytes: &[u8]) -> String {
        let bits: Vec<u8> =
            bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        bits.chunks(6)
            .map(|chunk| {
                let six = chunk.iter().fold(0, |six, bit| six << 1 | bit) << (6 - chunk.len());
                char::from(ALPHABET[usize::from(six)])
            })
            .collect()
    }

    #[track_caller]
    fn check(head: &[u8], size: Option<(u64, u64)>) {
        let expected = size.map(|(width, height)| Dimensions { width, height });
        assert_eq!(image_dimensions(&encode(head)), expected);
        for cut in 0..head.len().min(40) {
            image_dimensions(&encode(&head[..cut]));
        }
    }

    #[test]
    fn png_says_its_size_in_the_first_chunk() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x06\xff\0\0\0\x95\x08", Some((1791, 149)));
    }

    #[test]
    fn gif_says_its_size_after_its_version() {
        check(b"GIF89a\x40\x01\xf0\0\xf7\0\0", Some((320, 240)));
    }

    #[test]
    fn the_three_kinds_of_webp_say_their_size() {
        check(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\0", Some((320, 240)));
        check(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\0\0\0\0\0\0", Some((320, 240)));
        check(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0", Some((320, 240)));
    }

    #[test]
    fn jpeg_says_its_size_after_its_other_segments() {
        let mut jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xe1\x80\0".to_vec();
        jpeg.extend([0; 0x8000 - 2]);
        jpeg.extend(b"\xff\xc4\0\x04\0\0\xff\xc2\0\x11\x08\0\xf0\x01\x40\x03");
        check(&jpeg, Some((320, 240)));
    }

    #[test]
    fn anything_else_has_no_size() {
        check(b"", None);
        check(b"%PDF-1.7 and so on, long enough to hold any header", None);
    }

    #[test]
    fn base64_may_be_url_safe_broken_into_lines_or_cut() {
        assert_eq!(decode_base64("aGV\nsbG8=", 99), b"hello");
        assert_eq!(decode_base64("_-8", 99), b"\xff\xef");
        assert_eq!(decode_base64("aGVsbG8", 3), b"hel");
    }
}
