//! Progress on stderr, only where stderr is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner with a sentence, for work of unknown length; nothing at all where stderr is not a terminal.
pub fn spinner(sentence: impl Into<String>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(sentence.into());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A bar of `length` steps; nothing at all where stderr is not a terminal.
pub fn bar(sentence: impl Into<String>, length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style).with_message(sentence.into())
}

/// A bar of bytes, whose length is told later; nothing at all where stderr is not a terminal.
pub fn bytes(sentence: impl Into<String>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(sentence.into())
}
