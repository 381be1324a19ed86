//! What the reader sees: numbered sections, indented facts, times since the beginning.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Prints; clones share one output, as notifications arrive beside the story.
#[derive(Clone)]
pub struct Narrator(Arc<Mutex<Telling>>);

struct Telling {
    began: Instant,
    sections: u32,
    /// The reader has gone: nothing more is printed.
    unheard: bool,
}

impl Default for Narrator {
    fn default() -> Self {
        let telling = Telling {
            began: Instant::now(),
            sections: 0,
            unheard: false,
        };
        Self(Arc::new(Mutex::new(telling)))
    }
}

impl Narrator {
    /// Begins a section.
    pub fn section(&self, title: &str) {
        self.with(|telling| {
            telling.sections += 1;
            format!("\n{}. {title}\n", telling.sections)
        });
    }

    /// Tells a fact that was just read.
    pub fn fact(&self, fact: &str) {
        self.with(|telling| format!("   {}  {fact}\n", telling.time()));
    }

    /// Tells of a notification that has just arrived.
    pub fn notification(&self, notification: &str) {
        self.with(|telling| format!("   {}      notification: {notification}\n", telling.time()));
    }

    /// Prints text as it is, indented.
    pub fn block(&self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.with(|_| format!("   {}\n", lines.join("\n   ")));
    }

    fn with(&self, say: impl FnOnce(&mut Telling) -> String) {
        let mut telling = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = say(&mut telling);
        if telling.unheard {
            return;
        }
        let mut out = std::io::stdout().lock();
        telling.unheard = out
            .write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .is_err();
    }
}

impl Telling {
    fn time(&self) -> String {
        let ms = self.began.elapsed().as_millis();
        format!("+{}.{:03} s", ms / 1000, ms % 1000)
    }
}
