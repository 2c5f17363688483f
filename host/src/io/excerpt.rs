//! What a file says, quoted in a sentence.

use core::fmt;

/// A piece of a file, cut to 40 characters; control characters are shown as escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    const CHARS: usize = 40;

    pub(crate) fn new(bytes: &[u8]) -> Self {
        // Four bytes a character at most, and one character more to see whether anything is cut.
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * Self::CHARS + 4)]);
        let mut excerpt: String = text.chars().take(Self::CHARS).flat_map(char::escape_debug).collect();
        if text.chars().count() > Self::CHARS {
            excerpt.push_str("...");
        }
        Self(excerpt)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}
