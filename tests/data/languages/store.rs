//! A store of parts.

use std::collections::HashMap;
use std::fmt::{self, Display};

/// How many parts fit.
pub const LIMIT: usize = 100;
static OPENED: i32 = 0;

pub type Name = String;

/// Where parts come from.
pub trait Source {
    type Item;
    /// Reads one.
    fn read(&self, name: &str) -> Option<Part>;
    fn name(&self) -> String {
        String::from("source")
    }
}

#[derive(Debug, Clone)]
pub enum State {
    Full,
    Partly(usize),
    Broken { why: String },
}

/// One part on a shelf.
#[derive(Debug)]
pub struct Part {
    pub name: Name,
    count: u32,
}

pub struct Store<T: Source> {
    source: T,
    parts: HashMap<Name, Part>,
}

impl<T: Source> Store<T> {
    /// Adds one part.
    #[must_use]
    pub fn add(&mut self, part: Part) -> Result<(), String> {
        if self.parts.len() >= LIMIT {
            return Err(format!("full: {}", part.name));
        }
        self.parts.insert(part.name.clone(), part);
        Ok(())
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

macro_rules! part {
    ($name:expr) => {
        Part { name: $name.into(), count: 0 }
    };
}

pub fn load<T: Source>(source: T) -> Store<T> {
    let mut store = Store { source, parts: HashMap::new() };
    if let Some(part) = store.source.read("one") {
        let _ = store.add(part);
    }
    store
}

mod tests {
    use super::*;

    #[test]
    fn one_is_added() {
        helper(part!("x"));
    }

    fn helper(_part: Part) {}
}
