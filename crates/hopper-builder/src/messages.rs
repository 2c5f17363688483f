//! What the nested cargo says, less one warning that tells nobody anything.

use std::io::{BufRead, Result, Write};

use crate::compile::TARGET_FEATURE;

/// Copies messages, line by line, without rustc's warning that the feature in [`TARGET_FEATURE`] is unstable.
///
/// The warning comes once for each crate, and rustc has no lint by which it could be allowed. It ends with an empty line;
/// where it was a crate's only one, cargo's count of it goes too. All else passes.
pub fn relay(mut from: impl BufRead, mut to: impl Write) -> Result<()> {
    let feature = TARGET_FEATURE.trim_start_matches('+');
    let known = format!("warning: unstable feature specified for `-Ctarget-feature`: `{feature}`");
    let (mut line, mut within) = (Vec::new(), false);
    while from.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        within |= text == known;
        // Of a crate that is compiled twice, as the library and as the module, cargo says so.
        let counted = text.strip_suffix(" (1 duplicate)").unwrap_or(text);
        let counts_it = text.starts_with("warning: `") && counted.ends_with(" generated 1 warning");
        if !within && !counts_it {
            to.write_all(&line)?;
        }
        within &= !text.is_empty();
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_warning_is_left_out() {
        let messages = "   Compiling kernels v0.1.0\n\
            warning: unstable feature specified for `-Ctarget-feature`: `ptx82`\n  \
              |\n  \
              = note: this feature is not stably supported; its behavior can change in the future\n\
            \n\
            warning: unused variable: `x`\n \
             --> src/lib.rs:1:1\n\
            \n\
            warning: `core` (lib) generated 1 warning\n\
            warning: `other` (lib) generated 1 warning (1 duplicate)\n\
            warning: `kernels` (lib) generated 2 warnings\n\
            warning: unstable feature specified for `-Ctarget-feature`: `ptx99`\n\
            error: the last line has no end";
        let mut passed = Vec::new();
        relay(messages.as_bytes(), &mut passed).unwrap();
        let expected = "   Compiling kernels v0.1.0\n\
            warning: unused variable: `x`\n \
             --> src/lib.rs:1:1\n\
            \n\
            warning: `kernels` (lib) generated 2 warnings\n\
            warning: unstable feature specified for `-Ctarget-feature`: `ptx99`\n\
            error: the last line has no end";
        assert_eq!(String::from_utf8(passed).unwrap(), expected);
    }
}
