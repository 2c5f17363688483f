//! One module for one entry.

use super::module::{Item, Kind, Module, identifiers};
use super::record::{LaunchBounds, is_record};
use crate::Error;
use std::collections::HashMap;

/// The module that holds `entry`, its launch bounds, and what it reaches.
pub(super) fn extract(module: &Module, entry: &Item, bounds: &LaunchBounds) -> Result<String, Error> {
    let mut closure = Closure { module, kernel: entry.name(), order: Vec::new(), marks: HashMap::new() };
    closure.visit(entry)?;
    let names = new_names(&closure.order);
    let mut text = module.header.clone();
    for (index, item) in closure.order.iter().enumerate() {
        text.push('\n');
        let renamed = rename(&item.text, &names, index - closure.num_variables_before(index));
        match item.kind {
            Kind::Entry => text.push_str(&with_bounds(&renamed, bounds)),
            _ => text.push_str(&renamed),
        }
        text.push('\n');
    }
    Ok(text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Done,
}

/// What an entry reaches, in an order in which everything stands before its users.
struct Closure<'a> {
    module: &'a Module,
    kernel: &'a str,
    order: Vec<&'a Item>,
    marks: HashMap<&'a str, Mark>,
}

impl<'a> Closure<'a> {
    fn visit(&mut self, item: &'a Item) -> Result<(), Error> {
        match self.marks.insert(item.name(), Mark::Open) {
            Some(Mark::Open) => return Err(Error::Circle { symbol: item.name().to_owned() }),
            Some(Mark::Done) => {
                self.marks.insert(item.name(), Mark::Done);
                return Ok(());
            }
            None => {}
        }
        if item.kind == Kind::Declaration {
            // vprintf, malloc and the like would be linked by the driver; kernels here call none.
            return Err(Error::Undefined { kernel: self.kernel.to_owned(), symbol: item.name().to_owned() });
        }
        let own_name = identifiers(&item.text).find(|range| &item.text[range.clone()] == item.name());
        for range in identifiers(&item.text).filter(|range| Some(range) != own_name.as_ref()) {
            if let Some(used) = self.module.get(&item.text[range]).filter(|used| !is_record(used)) {
                self.visit(used)?;
            }
        }
        self.marks.insert(item.name(), Mark::Done);
        self.order.push(item);
        Ok(())
    }

    fn num_variables_before(&self, index: usize) -> usize {
        self.order[..index].iter().filter(|item| is_variable(item)).count()
    }
}

fn is_variable(item: &Item) -> bool {
    matches!(item.kind, Kind::Variable | Kind::ExternalVariable)
}

/// Names that hold no crate hash, for all but entries and external variables.
fn new_names<'a>(order: &[&'a Item]) -> HashMap<&'a str, String> {
    let (mut num_functions, mut num_variables) = (0, 0);
    let mut names = HashMap::new();
    for item in order {
        let (word, count) = match item.kind {
            Kind::Function => ("function", &mut num_functions),
            Kind::Variable => ("variable", &mut num_variables),
            _ => continue,
        };
        names.insert(item.name(), format!("{word}_{count}"));
        *count += 1;
    }
    names
}

/// The item's text with its symbols renamed, its labels numbered by `function_index`, and no empty lines.
fn rename(text: &str, names: &HashMap<&str, String>, function_index: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in identifiers(text) {
        let word = &text[range.clone()];
        let new = if let Some(name) = names.get(word) {
            name.clone()
        } else if let Some((symbol, parameter)) = word.rsplit_once("_param_") {
            match names.get(symbol) {
                Some(name) => format!("{name}_param_{parameter}"),
                None => continue,
            }
        } else if let Some((_, block)) = word.strip_prefix("$L__BB").and_then(|label| label.split_once('_')) {
            format!("$L__BB{function_index}_{block}")
        } else {
            continue;
        };
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    let lines: Vec<&str> = out.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.join("\n")
}

/// Writes the launch bounds between an entry's parameters and its body.
fn with_bounds(text: &str, bounds: &LaunchBounds) -> String {
    let (signature, body) = text.split_at(text.find('{').unwrap_or(text.len()));
    format!("{}\n{}{body}", signature.trim_end(), bounds.directives())
}
