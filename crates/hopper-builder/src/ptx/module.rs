//! Reads PTX text into its top-level items.

use crate::Error;
use std::collections::HashMap;
use std::ops::Range;

/// What a top-level item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Entry,
    Function,
    /// A function's signature without a body.
    Declaration,
    Variable,
    /// A variable of another module or, with `.shared`, the launch's dynamic shared memory.
    ExternalVariable,
}

/// One top-level item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// The item's text, without comments.
    pub(super) text: String,
    name: Range<usize>,
}

impl Item {
    pub(super) fn name(&self) -> &str {
        &self.text[self.name.clone()]
    }
}

/// A PTX module.
#[derive(Debug)]
pub(super) struct Module {
    /// `.version`, `.target` and `.address_size`, one a line.
    pub(super) header: String,
    items: Vec<Item>,
    by_name: HashMap<String, usize>,
}

impl Module {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let text = strip_comments(text);
        let mut module = Self { header: String::new(), items: Vec::new(), by_name: HashMap::new() };
        let mut at = 0;
        while let Some(skipped) = text[at..].find(|c: char| !c.is_whitespace()) {
            at += skipped;
            let rest = &text[at..];
            let line = || text[..at].lines().count() + usize::from(text[..at].ends_with('\n'));
            if [".version", ".target", ".address_size"].iter().any(|directive| rest.starts_with(directive)) {
                let end = rest.find('\n').unwrap_or(rest.len());
                module.header.push_str(rest[..end].trim_end());
                module.header.push('\n');
                at += end;
                continue;
            }
            let length = item_length(rest).ok_or_else(|| Error::Unfinished { line: line() })?;
            let item = classify(&rest[..length]).ok_or_else(|| Error::UnknownItem { line: line() })?;
            module.add(item);
            at += length;
        }
        Ok(module)
    }

    /// Files an item under its name; a definition goes before its declarations.
    fn add(&mut self, item: Item) {
        let index = self.items.len();
        if item.kind == Kind::Declaration {
            self.by_name.entry(item.name().to_owned()).or_insert(index);
        } else {
            self.by_name.insert(item.name().to_owned(), index);
        }
        self.items.push(item);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.kind == Kind::Entry)
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.kind == Kind::Variable)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Item> {
        self.by_name.get(name).map(|&index| &self.items[index])
    }
}

/// The text without comments and without space at the end of lines. Every line stays, so that numbers of lines in
/// errors are those of the file.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let end = comment_start(line).unwrap_or(line.len());
        out.push_str(line[..end].trim_end());
        out.push('\n');
    }
    out
}

/// Where `//` starts in a line, outside of quotes.
fn comment_start(line: &str) -> Option<usize> {
    let mut quoted = false;
    let bytes = line.as_bytes();
    (0..bytes.len()).find(|&i| {
        quoted ^= bytes[i] == b'"';
        !quoted && bytes[i..].starts_with(b"//")
    })
}

/// The length of the item at the start of `text`: through a `;` outside of brackets, or through a function's body.
fn item_length(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut initializer = false;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && !initializer {
                    return Some(i + 1);
                }
            }
            b'=' if depth == 0 => initializer = true,
            b';' if depth == 0 => return Some(i + 1),
            _ => {}
        }
    }
    None
}

fn classify(text: &str) -> Option<Item> {
    let directives: Vec<&str> = text.split_whitespace().take_while(|word| word.starts_with('.')).collect();
    let has = |directive| directives.contains(&directive);
    let function = has(".entry") || has(".func");
    let start = match text.find(".func") {
        // A return value stands in parentheses before the name.
        Some(at) if function && !has(".entry") => {
            let after = at + ".func".len();
            let skipped = text[after..].len() - text[after..].trim_start().len();
            match text[after + skipped..].starts_with('(') {
                true => after + text[after..].find(')')?,
                false => after,
            }
        }
        _ => 0,
    };
    let name = identifiers(&text[start..]).next()?;
    let kind = match text.ends_with('}') {
        _ if has(".entry") => Kind::Entry,
        true if function => Kind::Function,
        false if function => Kind::Declaration,
        _ if [".global", ".const", ".shared"].into_iter().any(has) => match has(".extern") {
            true => Kind::ExternalVariable,
            false => Kind::Variable,
        },
        _ => return None,
    };
    Some(Item { kind, text: text.to_owned(), name: name.start + start..name.end + start })
}

/// The ranges of identifiers: names, labels, opcodes, registers; no directives, no numbers.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let continues = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$';
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            at += 1;
            if !continues(bytes[start]) && !matches!(bytes[start], b'%' | b'.') {
                continue;
            }
            while at < bytes.len() && continues(bytes[at]) {
                at += 1;
            }
            if !bytes[start].is_ascii_digit() && bytes[start] != b'.' {
                return Some(start..at);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_apart() {
        let kind = |text: &str| classify(text).map(|item| (item.kind, item.name().to_owned()));
        let name = |text: &str| text.to_owned();
        assert_eq!(kind(".visible .entry k(\n.param .u64 k_param_0\n)\n{ ret; }"), Some((Kind::Entry, name("k"))));
        assert_eq!(kind(".func (.param .b32 r) f(.param .b32 a)\n{ ret; }"), Some((Kind::Function, name("f"))));
        assert_eq!(kind(".extern .func f\n(\n)\n.noreturn;"), Some((Kind::Declaration, name("f"))));
        assert_eq!(kind(".global .align 4 .b8 t[2] = {1, 2};"), Some((Kind::Variable, name("t"))));
        let shared = ".extern .shared .align 1024 .b8 s[];";
        assert_eq!(kind(shared), Some((Kind::ExternalVariable, name("s"))));
        assert_eq!(kind(".alias a, b;"), None);
    }

    #[test]
    fn comments_go_but_not_what_looks_like_one() {
        assert_eq!(strip_comments("a; // b\n\"x//y\"\n"), "a;\n\"x//y\"\n");
    }

    #[test]
    fn identifiers_leave_out_directives_and_numbers() {
        let text = "mov.b64 \t%rd1, _RNv4kern5TABLE; $L__BB0_1: .reg .pred p<0f3F80>;";
        let found: Vec<&str> = identifiers(text).map(|range| &text[range]).collect();
        assert_eq!(found, ["mov", "%rd1", "_RNv4kern5TABLE", "$L__BB0_1", "p"]);
    }
}
