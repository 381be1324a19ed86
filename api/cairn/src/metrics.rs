//! Counters for `/metrics`.

use cairn_domain::ports::Metrics;
use prometheus::{IntCounterVec, Opts, Registry, TextEncoder};

/// The counters of this process.
pub struct Counters {
    registry: Registry,
    unclassified: IntCounterVec,
    answers: IntCounterVec,
}

impl Counters {
    /// Fresh counters.
    ///
    /// # Errors
    ///
    /// Never in practice: the names are fixed and distinct.
    pub fn try_new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let unclassified = IntCounterVec::new(
            Opts::new(
                "cairn_unclassified_waits_total",
                "Waits whose reason stands in no row of the table of waits.",
            ),
            &["source", "reason"],
        )?;
        let answers = IntCounterVec::new(
            Opts::new(
                "cairn_http_answers_total",
                "Answers of the HTTP server by status.",
            ),
            &["status"],
        )?;
        registry.register(Box::new(unclassified.clone()))?;
        registry.register(Box::new(answers.clone()))?;
        Ok(Self {
            registry,
            unclassified,
            answers,
        })
    }
}

impl Metrics for Counters {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Err(failed) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(error = %failed, "metrics cannot be written as text");
        }
        text
    }

    fn unclassified_wait(&self, source: &str, reason: &str) {
        // Reasons come from outside: a long or strange one must not become a label of its own.
        let known = reason.len() <= 64 && reason.chars().all(|c| c.is_ascii_alphanumeric());
        let reason = if known { reason } else { "other" };
        self.unclassified.with_label_values(&[source, reason]).inc();
    }

    fn answered(&self, status: u16) {
        self.answers
            .with_label_values(&[status.to_string().as_str()])
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown() {
        let counters = Counters::try_new().unwrap();
        counters.unclassified_wait("container", "SomethingNew");
        counters.unclassified_wait("container", &"x".repeat(65));
        counters.answered(202);
        let text = counters.text();
        for line in [
            "cairn_unclassified_waits_total{reason=\"SomethingNew\",source=\"container\"} 1",
            "cairn_unclassified_waits_total{reason=\"other\",source=\"container\"} 1",
            "cairn_http_answers_total{status=\"202\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
