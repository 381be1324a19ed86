//! From the parser's events to nodes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag, options};
use serde_json::Value;

use super::{Kind, MAX_DEPTH, Node, scalar};
use crate::error::{ErrorKind, PackageError, quoted};

/// How a text is read.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Nodes that all files of a package may have after their aliases are put in.
    pub(crate) nodes: usize,
    /// How many of them are made already.
    pub(crate) spent: &'a Cell<usize>,
    /// Whether a key that stands twice in a mapping is let through (the last one then holds).
    pub(crate) repeated_keys: bool,
}

/// A node with what it weighs and how deep it is.
struct Made {
    node: Node,
    weight: usize,
    depth: usize,
}

/// A collection that is still open.
struct Open {
    line: usize,
    anchor: usize,
    weight: usize,
    depth: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping {
        members: BTreeMap<String, Node>,
        merged: Vec<Node>,
        key: Option<(String, usize)>,
    },
}

/// Long texts weigh as many nodes as they have pieces of this many bytes.
const BYTES_PER_NODE: usize = 64;

/// Key that stands for "take over the members of this mapping".
const MERGE: &str = "<<";

/// The documents of a text, empty ones as `None`.
///
/// # Errors
/// [`ErrorKind::Yaml`] or [`ErrorKind::Limit`] with file and line.
pub(crate) fn documents(
    text: &str,
    file: &str,
    how: Options<'_>,
) -> Result<Vec<Option<Node>>, PackageError> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut composer = Composer {
        how,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        documents: Vec::new(),
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|e| {
            fault(
                ErrorKind::Yaml,
                e.marker().line(),
                format!("broken YAML: {}", e.info()),
            )
            .in_file(file)
        })?;
        composer.take(event, &span).map_err(|e| e.in_file(file))?;
    }
    Ok(composer.documents)
}

fn fault(kind: ErrorKind, line: usize, message: impl Into<String>) -> PackageError {
    PackageError::new(kind, message).at_line(line)
}

struct Composer<'a> {
    how: Options<'a>,
    open: Vec<Open>,
    /// Anchored nodes of this document; an anchor that is still open is absent.
    anchors: HashMap<usize, Made>,
    root: Option<Node>,
    documents: Vec<Option<Node>>,
}

impl Composer<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), PackageError> {
        let line = span.start.line();
        match event {
            Event::DocumentEnd => {
                self.documents
                    .push(self.root.take().filter(|root| !root.is_null()));
                self.anchors.clear();
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.as_deref().is_some_and(|tag| tag.suffix() == "binary") {
                    return Err(fault(
                        ErrorKind::Yaml,
                        line,
                        "the tag !!binary is not taken",
                    ));
                }
                let weight = 1 + text.len() / BYTES_PER_NODE;
                self.grow(weight, line)?;
                let made = Made {
                    node: Node {
                        line,
                        kind: scalar_of(text, style, tag.as_deref()),
                    },
                    weight,
                    depth: 0,
                };
                let plain = matches!(style, ScalarStyle::Plain);
                self.anchored(made, anchor, plain)?;
            }
            Event::Alias(id) => self.alias(id, line)?,
            Event::SequenceStart(_, anchor, _) => {
                self.begin(line, anchor, Content::Sequence(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, _) => {
                let content = Content::Mapping {
                    members: BTreeMap::new(),
                    merged: Vec::new(),
                    key: None,
                };
                self.begin(line, anchor, content)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, line: usize, anchor: usize, content: Content) -> Result<(), PackageError> {
        self.grow(1, line)?;
        self.open.push(Open {
            line,
            anchor,
            weight: 1,
            depth: 0,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), PackageError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = match open.content {
            Content::Sequence(items) => Kind::Sequence(items),
            Content::Mapping {
                members, merged, ..
            } => Kind::Mapping(merge(members, merged, open.line)?),
        };
        let made = Made {
            node: Node {
                line: open.line,
                kind,
            },
            weight: open.weight,
            depth: open.depth + 1,
        };
        self.anchored(made, open.anchor, false)
    }

    fn alias(&mut self, id: usize, line: usize) -> Result<(), PackageError> {
        let Some(target) = self.anchors.get(&id) else {
            return Err(fault(
                ErrorKind::Yaml,
                line,
                "an alias stands inside its own anchor",
            ));
        };
        let weight = target.weight;
        self.grow(weight, line)?;
        let target = self.anchors.get(&id).expect("found above");
        let made = Made {
            node: target.node.clone(),
            weight,
            depth: target.depth,
        };
        self.place(made, false)
    }

    /// Counts nodes before they are made.
    fn grow(&self, weight: usize, line: usize) -> Result<(), PackageError> {
        let spent = self.how.spent.get().saturating_add(weight);
        self.how.spent.set(spent);
        if spent <= self.how.nodes {
            return Ok(());
        }
        Err(fault(
            ErrorKind::Limit,
            line,
            format!(
                "the YAML of the package has more than {} nodes (aliases count as what they stand for)",
                self.how.nodes
            ),
        ))
    }

    fn anchored(&mut self, made: Made, anchor: usize, plain: bool) -> Result<(), PackageError> {
        if anchor != 0 {
            self.grow(made.weight, made.node.line)?;
            let copy = Made {
                node: made.node.clone(),
                ..made
            };
            self.anchors.insert(anchor, copy);
        }
        self.place(made, plain)
    }

    /// Puts a node where it belongs: into the innermost open collection, or at the root.
    fn place(&mut self, made: Made, plain: bool) -> Result<(), PackageError> {
        let line = made.node.line;
        let repeated_keys = self.how.repeated_keys;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(made.node);
            return Ok(());
        };
        open.weight = open.weight.saturating_add(made.weight);
        open.depth = open.depth.max(made.depth);
        if open.depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} deep");
            return Err(fault(ErrorKind::Limit, line, message));
        }
        match &mut open.content {
            Content::Sequence(items) => items.push(made.node),
            Content::Mapping {
                members,
                merged,
                key,
            } => match key.take() {
                None => *key = Some((key_of(made.node, plain)?, line)),
                Some((name, _)) if name == MERGE => merged.push(made.node),
                Some((name, key_line)) => {
                    let name = name.strip_prefix('\0').map(str::to_owned).unwrap_or(name);
                    if !repeated_keys && members.contains_key(&name) {
                        let message =
                            format!("the key {} stands twice in this mapping", quoted(&name));
                        return Err(fault(ErrorKind::Yaml, key_line, message));
                    }
                    members.insert(name, made.node);
                }
            },
        }
        Ok(())
    }
}

/// The text of a key. A quoted `"<<"` is no merge: it is marked with a NUL until it is placed.
fn key_of(node: Node, plain: bool) -> Result<String, PackageError> {
    match node.kind {
        Kind::Scalar { text, .. } if text == MERGE && !plain => Ok(format!("\0{MERGE}")),
        Kind::Scalar { text, .. } => Ok(text),
        Kind::Sequence(_) | Kind::Mapping(_) => Err(fault(
            ErrorKind::Yaml,
            node.line,
            "the key of a mapping must be a scalar",
        )),
    }
}

/// Members of merged mappings, under the mapping's own.
fn merge(
    mut members: BTreeMap<String, Node>,
    merged: Vec<Node>,
    line: usize,
) -> Result<BTreeMap<String, Node>, PackageError> {
    for node in merged {
        let sources = match node.kind {
            Kind::Sequence(items) => items,
            Kind::Mapping(_) | Kind::Scalar { .. } => vec![node],
        };
        for source in sources {
            let Kind::Mapping(of) = source.kind else {
                return Err(fault(ErrorKind::Yaml, line, "\"<<\" must name mappings"));
            };
            for (key, value) in of {
                members.entry(key).or_insert(value);
            }
        }
    }
    Ok(members)
}

fn scalar_of(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Kind {
    let is_text = match tag.and_then(Tag::core_suffix) {
        Some("int" | "float" | "bool" | "null") => false,
        Some(_) => true,
        None => !matches!(style, ScalarStyle::Plain),
    };
    let value = if is_text {
        Value::String(text.clone().into_owned())
    } else {
        scalar::plain(&text)
    };
    Kind::Scalar {
        text: text.into_owned(),
        value,
    }
}
