//! What a file says, quoted in a sentence.

use core::fmt;

/// A piece of a file, cut to 40 characters (a name to 120); control characters are shown as escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    const CHARS: usize = 40;

    /// Names of tensors and files say nothing where they are cut early.
    const NAME_CHARS: usize = 120;

    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self::cut(bytes, Self::CHARS)
    }

    pub(crate) fn name(name: &str) -> Self {
        Self::cut(name.as_bytes(), Self::NAME_CHARS)
    }

    fn cut(bytes: &[u8], num_chars: usize) -> Self {
        // Four bytes a character at most, and one character more to see whether anything is cut.
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * num_chars + 4)]);
        let mut excerpt: String = text.chars().take(num_chars).flat_map(char::escape_debug).collect();
        if text.chars().count() > num_chars {
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
