//! Counts images and documents. Takes the model's rule, a media type and the base64 text (or its
//! length alone), gives tokens as the provider's published rule has them. Never decodes more than the
//! head of an image, and never fails: what cannot be read is taken as a typical one.

mod dimensions;

use self::dimensions::{Dimensions, image_dimensions};

use crate::{prices::bare_model_name, units::Tokens};

/// What is known of a medium's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum MediaBytes<'a> {
    /// The medium itself, in base64.
    Base64(&'a str),
    /// Only how many bytes it has; 0 if not even that (a URL, a file id).
    Length(usize),
}

/// The fidelity that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ImageDetail {
    /// A small fixed view.
    Low,
    /// What the provider chooses: the same as `High` in every published rule.
    #[default]
    Auto,
    /// The full view.
    High,
}

/// How a family of models turns pixels into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageRule {
    /// Claude: one token per 750 pixels after scaling down.
    Pixels {
        /// The longest side that is not scaled down, in pixels.
        longest_side: u64,
        /// The most that one image costs.
        most: Tokens,
    },
    /// GPT-4o and kin: a base and a price per tile of 512 pixels.
    Tiles {
        /// What every image costs, and all that one of low detail does.
        base: Tokens,
        /// What each tile costs.
        tile: Tokens,
    },
    /// Newer GPT: patches of 32 pixels.
    Patches {
        /// Tokens per patch, in hundredths.
        hundredths: u64,
        /// The most patches that one image is cut into.
        most: u64,
    },
    /// Gemini up to 2.5: 258 tokens per tile.
    GeminiTiles,
    /// Gemini 3: a fixed number per image.
    GeminiFixed,
}

impl ImageRule {
    /// Chooses the rule of a model; an unknown one gets that of GPT-4o.
    pub(super) fn for_model(model: &str) -> Self {
        let name = bare_model_name(model);
        RULES.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(GPT_4O, |&(_, rule)| rule)
    }
}

/// Counts one image or document of media type `mime` as part of a request.
pub(super) fn count_media(rule: ImageRule, mime: &str, bytes: MediaBytes<'_>, detail: ImageDetail) -> Tokens {
    if mime.starts_with("image/") {
        return count_image(rule, known_dimensions(bytes).unwrap_or(TYPICAL_IMAGE), detail);
    }
    let length = match bytes {
        MediaBytes::Base64(text) => text.len() / 4 * 3,
        MediaBytes::Length(length) => length,
    };
    if mime == "application/pdf" {
        let pages = length.div_ceil(BYTES_PER_PDF_PAGE).max(1);
        return Tokens(Tokens::from_len(pages).0.saturating_mul(per_page(rule).0));
    }
    if mime.starts_with("audio/") {
        return Tokens::from_len(length / BYTES_PER_AUDIO_TOKEN);
    }
    Tokens::from_len(length / BYTES_PER_TEXT_TOKEN)
}

pub(super) const GPT_4O: ImageRule = ImageRule::Tiles { base: Tokens(85), tile: Tokens(170) };
const GPT_5: ImageRule = ImageRule::Tiles { base: Tokens(70), tile: Tokens(140) };
const O_SERIES: ImageRule = ImageRule::Tiles { base: Tokens(75), tile: Tokens(150) };
const MINI: ImageRule = ImageRule::Patches { hundredths: 162, most: 1536 };
const NANO: ImageRule = ImageRule::Patches { hundredths: 246, most: 1536 };
/// GPT-5.4 and later see up to 2,500 patches at high detail. That a patch is one token is assumed.
const GPT_5_4: ImageRule = ImageRule::Patches { hundredths: 100, most: 2500 };
const CLAUDE: ImageRule = ImageRule::Pixels { longest_side: 1568, most: Tokens(1600) };
/// Claude since Opus 4.7 sees up to 3.75 megapixels.
const CLAUDE_HIGH_RESOLUTION: ImageRule = ImageRule::Pixels { longest_side: 2576, most: Tokens(4784) };

/// Rules by name prefix, the longer before the shorter, from the vision guides of the three providers
/// as of 2026.
const RULES: &[(&str, ImageRule)] = &[
    ("claude-2", CLAUDE),
    ("claude-3", CLAUDE),
    ("claude-haiku-4", CLAUDE),
    ("claude-sonnet-4", CLAUDE),
    ("claude-opus-4-7", CLAUDE_HIGH_RESOLUTION),
    ("claude-opus-4-8", CLAUDE_HIGH_RESOLUTION),
    ("claude-opus-4", CLAUDE),
    ("claude", CLAUDE_HIGH_RESOLUTION),
    ("gpt-4o-mini", ImageRule::Tiles { base: Tokens(2833), tile: Tokens(5667) }),
    ("gpt-4-1-mini", MINI),
    ("gpt-4-1-nano", NANO),
    ("gpt-4", GPT_4O),
    ("gpt-5-mini", MINI),
    ("gpt-5-nano", NANO),
    ("gpt-5-4-mini", MINI),
    ("gpt-5-4-nano", NANO),
    ("gpt-5-4", GPT_5_4),
    ("gpt-5-5", GPT_5_4),
    ("gpt-5-6", GPT_5_4),
    ("gpt-5", GPT_5),
    ("gpt-6", GPT_5_4),
    ("o4-mini", ImageRule::Patches { hundredths: 172, most: 1536 }),
    ("o1", O_SERIES),
    ("o3", O_SERIES),
    ("computer-use", ImageRule::Tiles { base: Tokens(65), tile: Tokens(129) }),
    ("gemini-1", ImageRule::GeminiTiles),
    ("gemini-2", ImageRule::GeminiTiles),
    ("gemini", ImageRule::GeminiFixed),
];

/// Taken for an image whose size cannot be read: a full-screen screenshot.
const TYPICAL_IMAGE: Dimensions = Dimensions { width: 1920, height: 1080 };

/// Assumed size of a PDF page: a page of text with fonts and a figure now and then.
const BYTES_PER_PDF_PAGE: usize = 50_000;

/// 32 tokens per second (Gemini's audio guide) of 128 kbit/s sound.
const BYTES_PER_AUDIO_TOKEN: usize = 500;

/// Any other document is taken as plain text.
const BYTES_PER_TEXT_TOKEN: usize = 4;

fn known_dimensions(bytes: MediaBytes<'_>) -> Option<Dimensions> {
    match bytes {
        MediaBytes::Base64(text) => image_dimensions(text),
        MediaBytes::Length(_) => None,
    }
}

/// Returns what a PDF page costs. Claude and GPT read both its text (1,500 to 3,000 tokens by
/// Anthropic's guide) and its picture; Gemini has a fixed price.
const fn per_page(rule: ImageRule) -> Tokens {
    match rule {
        ImageRule::Pixels { .. } => Tokens(2250 + 1600),
        ImageRule::Tiles { .. } | ImageRule::Patches { .. } => Tokens(2250 + 765),
        ImageRule::GeminiTiles => Tokens(258),
        ImageRule::GeminiFixed => Tokens(560),
    }
}

fn count_image(rule: ImageRule, size: Dimensions, detail: ImageDetail) -> Tokens {
    match rule {
        ImageRule::Pixels { longest_side, most } => {
            let size = size.scaled_to_fit(longest_side, longest_side);
            Tokens(size.width.saturating_mul(size.height) / 750).clamp(Tokens(1), most)
        }
        ImageRule::Tiles { base, tile } => match detail {
            ImageDetail::Low => base,
            ImageDetail::Auto | ImageDetail::High => base + Tokens(tile.0.saturating_mul(openai_tiles(size))),
        },
        ImageRule::Patches { hundredths, most } => {
            let size = match detail {
                ImageDetail::Low => size.scaled_to_fit(512, 512),
                ImageDetail::Auto | ImageDetail::High => size,
            };
            let patches = size.width.div_ceil(32).saturating_mul(size.height.div_ceil(32)).min(most);
            Tokens((patches * hundredths).div_ceil(100))
        }
        ImageRule::GeminiTiles => Tokens(258 * gemini_tiles(size)),
        ImageRule::GeminiFixed => match detail {
            ImageDetail::Low => Tokens(280),
            ImageDetail::Auto | ImageDetail::High => Tokens(1120),
        },
    }
}

/// Scales into 2048 by 2048, then the shorter side to 768, and counts tiles of 512.
fn openai_tiles(size: Dimensions) -> u64 {
    let size = size.scaled_to_fit(2048, 768);
    size.width.div_ceil(512) * size.height.div_ceil(512)
}

/// One tile up to 384 pixels, else tiles of two thirds of the shorter side, 256 to 768 pixels.
fn gemini_tiles(size: Dimensions) -> u64 {
    if size.width <= 384 && size.height <= 384 {
        return 1;
    }
    let size = size.scaled_to_fit(3072, 3072);
    let tile = (size.width.min(size.height) * 2 / 3).clamp(256, 768);
    size.width.div_ceil(tile) * size.height.div_ceil(tile)
}

impl Dimensions {
    /// Scales down, never up, until the longer and the shorter side fit.
    fn scaled_to_fit(self, longer_side: u64, shorter_side: u64) -> Self {
        let scaled = |size: Self, side: u64, limit: u64| {
            if side <= limit {
                return size;
            }
            let fit = |length: u64| (length.saturating_mul(limit) / side).max(1);
            Self { width: fit(size.width), height: fit(size.height) }
        };
        let size = scaled(self, self.width.max(self.height), longer_side);
        scaled(size, size.width.min(size.height), shorter_side)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dimensions, ImageDetail, ImageRule, MediaBytes, Tokens, count_image, count_media};

    #[track_caller]
    fn check(model: &str, (width, height): (u64, u64), detail: ImageDetail, tokens: u64) {
        assert_eq!(
            count_image(ImageRule::for_model(model), Dimensions { width, height }, detail),
            Tokens(tokens)
        );
    }

    #[test]
    fn claude_pays_by_the_pixel_after_scaling_down() {
        check("claude-sonnet-4-5", (1000, 1000), ImageDetail::Auto, 1333);
        check("claude-sonnet-4-5", (200, 200), ImageDetail::Auto, 53);
        check("claude-sonnet-4-5", (4000, 4000), ImageDetail::Auto, 1600);
        check("claude-sonnet-4-5", (3136, 784), ImageDetail::Auto, 1568 * 392 / 750);
        check("claude-opus-5-5", (2000, 1500), ImageDetail::Auto, 4000);
    }

    #[test]
    fn gpt_4o_pays_by_the_tile() {
        check("gpt-4o", (1024, 1024), ImageDetail::High, 765);
        check("gpt-4o", (2048, 4096), ImageDetail::High, 1105);
        check("gpt-4o", (4096, 8192), ImageDetail::Low, 85);
        check("gpt-5.1", (1024, 1024), ImageDetail::High, 630);
    }

    #[test]
    fn newer_gpt_pay_by_the_patch() {
        check("gpt-4.1-mini", (1024, 1024), ImageDetail::High, 1659);
        check("gpt-4.1-mini", (1800, 2400), ImageDetail::High, 2489);
        check("gpt-6-sol", (1024, 1024), ImageDetail::Low, 256);
    }

    #[test]
    fn gemini_pays_by_the_tile_and_since_3_by_the_image() {
        check("gemini-2.5-pro", (384, 384), ImageDetail::Auto, 258);
        check("gemini-2.5-pro", (960, 540), ImageDetail::Auto, 258 * 6);
        check("gemini-3.1-pro-preview", (4000, 100), ImageDetail::Auto, 1120);
    }

    #[test]
    fn extreme_sizes_do_not_overflow() {
        for model in ["claude-opus-4-6", "gpt-4o", "gpt-6-sol", "gemini-2.5-pro"] {
            for size in [0, 1, u64::from(u32::MAX)] {
                let tokens = count_image(
                    ImageRule::for_model(model),
                    Dimensions { width: size, height: 1 },
                    ImageDetail::High,
                );
                assert!(tokens <= Tokens(10_000), "{model} {size} {tokens}");
            }
        }
    }

    #[test]
    fn a_document_is_estimated_by_its_length() {
        let claude = ImageRule::for_model("claude-opus-4-6");
        assert_eq!(
            count_media(claude, "application/pdf", MediaBytes::Length(120_000), ImageDetail::Auto),
            Tokens(3 * 3850)
        );
        assert_eq!(
            count_media(claude, "application/pdf", MediaBytes::Length(0), ImageDetail::Auto),
            Tokens(3850)
        );
        assert_eq!(
            count_media(claude, "text/plain", MediaBytes::Length(400), ImageDetail::Auto),
            Tokens(100)
        );
    }

    #[test]
    fn an_image_that_cannot_be_read_is_a_typical_one() {
        let gpt = ImageRule::for_model("gpt-4o");
        assert_eq!(
            count_media(gpt, "image/png", MediaBytes::Base64("not an image"), ImageDetail::Auto),
            Tokens(1105)
        );
        assert_eq!(count_media(gpt, "image/png", MediaBytes::Length(0), ImageDetail::Auto), Tokens(1105));
    }
}
