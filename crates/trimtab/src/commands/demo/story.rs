//! Tells the demo to people: [`Story`]. Takes turns as they are played; prints them, at most [`WIDTH`] columns wide.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use trimtab_core::Tokens;
use trimtab_replay::ratio;

use super::{
    play::{HiddenNow, POLICY, PlayedSession, PlayedTurn, RecalledBlock},
    session::DemoSession,
};
use crate::output::{Output, count_with_noun, group_thousands, on_one_line, wrapped_at};

/// The most columns of a line.
const WIDTH: usize = 100;

/// Columns of the bar that shows the window.
const BAR: usize = 40;

/// How many hidden blocks of a turn are listed one by one: the largest.
const TOLD: usize = 5;

/// After this many seconds the provider's cache has expired.
const CACHE_SECONDS: i64 = 5 * 60;

/// How many lines of an original are shown.
const ORIGINAL_LINES: usize = 4;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const HIDDEN: Style = AnsiColor::Yellow.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();

/// What is printed, and where.
pub(super) struct Story<'a> {
    out: &'a mut Output,
    width: usize,
    /// Tokens that fill the whole bar.
    scale: u64,
}

impl<'a> Story<'a> {
    /// Says what is going to be shown.
    pub(super) fn print_beginning(
        session: &DemoSession,
        budget: Option<Tokens>,
        out: &'a mut Output,
    ) -> Result<Story<'a>> {
        let width = out.width().min(WIDTH);
        let requests = session.requests().count();
        let last = session.history.blocks().len().checked_sub(1).and_then(|last| u32::try_from(last).ok());
        let scale: u64 = (0..=last.unwrap_or(0)).map(|block| session.token_counts(block, "").0).sum();
        let limit = budget.map_or_else(String::new, |budget| {
            format!(" Requests may have {} tokens at most.", group_thousands(budget.0))
        });
        let mut story = Story { out, width, scale: scale.max(1) };
        story.out.write_line(format_args!("{BOLD}trimtab demo{BOLD:#}"))?;
        story.print_paragraph(&format!(
            "A Claude Code session of {requests} requests goes through the real proxy to a scripted provider on this \
             machine. No key is used and nothing is sent anywhere. The policy is {POLICY}, the prices are those of {}.{limit}",
            session.model.name
        ))?;
        story.out.write_line(format_args!(
            "{DIM}Each bar is the model's window at the end of a turn: # sent, {HIDDEN}.{HIDDEN:#}{DIM} hidden.{DIM:#}"
        ))?;
        story.out.flush()?;
        Ok(story)
    }

    /// Tells a turn.
    pub(super) fn tell_turn(&mut self, number: usize, turn: &PlayedTurn) -> Result<()> {
        let head = format!("Turn {number}  ");
        let prompt = on_one_line(&turn.prompt, self.width.saturating_sub(head.len() + 2));
        self.out.write_line("")?;
        self.out.write_line(format_args!("{BOLD}{head}{BOLD:#}\"{prompt}\""))?;
        if turn.pause_seconds > CACHE_SECONDS {
            self.out.write_line(format_args!(
                "  {DIM}after {} idle minutes the provider's cache has expired: hiding is free{DIM:#}",
                turn.pause_seconds / 60
            ))?;
        }
        let PlayedTurn { first_request, last_request, tokens_before, tokens_sent, .. } = turn;
        let (sent, hidden) = self.token_bar(*tokens_sent, *tokens_before);
        let of = if tokens_sent == tokens_before {
            format!("{} tokens", group_thousands(*tokens_sent))
        } else {
            format!("{} of {} tokens", group_thousands(*tokens_sent), group_thousands(*tokens_before))
        };
        self.out.write_line(format_args!("  {sent}{HIDDEN}{hidden}{HIDDEN:#}  {of}"))?;
        if turn.hidden.is_empty() {
            self.out.write_line(format_args!(
                "  {DIM}requests {first_request}-{last_request}: nothing is hidden{DIM:#}"
            ))?;
            return self.out.flush();
        }
        let saved: u64 = turn.hidden.iter().map(HiddenNow::tokens_saved).sum();
        self.out.write_line(format_args!(
            "  requests {first_request}-{last_request}: {} hidden, {} tokens",
            count_with_noun(turn.hidden.len(), "block", "blocks"),
            group_thousands(saved)
        ))?;
        let mut largest: Vec<&HiddenNow> = turn.hidden.iter().collect();
        largest.sort_by_key(|hidden| (std::cmp::Reverse(hidden.tokens_saved()), hidden.block));
        for hidden in largest.iter().take(TOLD) {
            let tokens = format!(
                "{} -> {}",
                group_thousands(hidden.tokens_before),
                group_thousands(hidden.tokens_sent)
            );
            let line =
                format!("    {tokens:>14}  step {:<3} {}: {}", hidden.step, hidden.what, hidden.reason);
            self.out.write_line(on_one_line_kept(&line, self.width))?;
        }
        if let Some(more @ 1..) = turn.hidden.len().checked_sub(TOLD) {
            self.out.write_line(format_args!("    {:>14}  {DIM}and {more} more{DIM:#}", ""))?;
        }
        self.out.flush()
    }

    /// Tells what was recalled and what was saved, and what to do next.
    pub(super) fn end(&mut self, played: &PlayedSession) -> Result<()> {
        if let Some(recalled) = &played.recalled {
            self.tell_recall(recalled)?;
        }
        let totals = &played.totals;
        let tokens = percent_less(totals.input_tokens, totals.input_tokens_untrimmed);
        let difference = difference_in_words(totals.input_dollars, totals.input_dollars_untrimmed);
        self.out.write_line("")?;
        self.out.write_line(format_args!("{BOLD}Result{BOLD:#}"))?;
        self.print_row(
            "input tokens",
            format_args!(
                "{} instead of {} ({tokens:.1} % less)",
                group_thousands(totals.input_tokens),
                group_thousands(totals.input_tokens_untrimmed)
            ),
        )?;
        self.print_row(
            "input cost",
            format_args!(
                "${:.2} instead of ${:.2}: {difference}",
                totals.input_dollars, totals.input_dollars_untrimmed
            ),
        )?;
        self.print_row(
            "hidden",
            format_args!(
                "{}; every original is stored and can be recalled",
                count_with_noun(totals.blocks_hidden, "block", "blocks")
            ),
        )?;
        self.print_paragraph(&format!(
            "The cost is that of input at the prices of {}, with its prompt cache simulated. A script of this project \
             made the session. Your own are next:",
            played.model
        ))?;
        for (command, what) in NEXT {
            self.out.write_line(format_args!("  {BOLD}{command:<22}{BOLD:#}{what}"))?;
        }
        Ok(())
    }

    fn tell_recall(&mut self, RecalledBlock { hidden, original }: &RecalledBlock) -> Result<()> {
        let width = self.width.saturating_sub(4);
        self.out.write_line("")?;
        self.out.write_line(format_args!("{BOLD}Recall{BOLD:#}  {} of step {}", hidden.what, hidden.step))?;
        self.out.write_line("  The model reads this instead:")?;
        for line in hidden.note.lines().filter(|line| !line.trim().is_empty()).take(ORIGINAL_LINES) {
            for part in wrapped_at(line, width) {
                self.out.write_line(format_args!("    {HIDDEN}{part}{HIDDEN:#}"))?;
            }
        }
        let lines = original.lines().count();
        self.out.write_line(format_args!(
            "  `trimtab recall {}` prints it byte for byte ({}):",
            hidden.handle,
            count_with_noun(lines, "line", "lines")
        ))?;
        for line in original.lines().take(ORIGINAL_LINES) {
            self.out.write_line(format_args!("    {DIM}{}{DIM:#}", on_one_line_kept(line, width)))?;
        }
        if lines > ORIGINAL_LINES {
            self.out.write_line(format_args!("    {DIM}…{DIM:#}"))?;
        }
        Ok(())
    }

    fn print_row(&mut self, name: &str, value: std::fmt::Arguments<'_>) -> Result<()> {
        self.out.write_line(format_args!("  {name:<14}{value}"))
    }

    fn print_paragraph(&mut self, text: &str) -> Result<()> {
        wrapped_at(text, self.width).iter().try_for_each(|line| self.out.write_line(line))
    }

    /// Returns the two parts of a bar.
    fn token_bar(&self, sent: u64, before: u64) -> (String, String) {
        let columns = |tokens: u64| {
            let all = u64::try_from(BAR).unwrap_or(u64::MAX);
            let columns = (tokens * all).div_ceil(self.scale).min(all);
            usize::try_from(columns).unwrap_or(BAR)
        };
        let (sent, before) = (columns(sent), columns(before));
        (
            "#".repeat(sent),
            ".".repeat(before.saturating_sub(sent)) + &" ".repeat(BAR.saturating_sub(before.max(sent))),
        )
    }
}

/// What to do next.
const NEXT: &[(&str, &str)] = &[
    ("trimtab replay", "what it would have saved in them; works offline"),
    ("trimtab wrap claude", "run an agent through it; `wrap --list` lists agents"),
    ("trimtab proxy", "run it on its own, for any program"),
];

/// Cuts a line without touching the spaces that it begins with.
fn on_one_line_kept(line: &str, width: usize) -> String {
    let spaces = line.len() - line.trim_start().len();
    " ".repeat(spaces) + &on_one_line(line, width.saturating_sub(spaces))
}

/// Says what was saved, or what it cost more: to hide much at once writes much of the cache again.
fn difference_in_words(dollars: f64, untrimmed: f64) -> String {
    let saved = untrimmed - dollars;
    let share = saved.abs() / untrimmed.max(f64::MIN_POSITIVE) * 100.0;
    if saved < 0.0 {
        format!("${:.2} more ({share:.1} %)", -saved)
    } else {
        format!("{GOOD}${saved:.2} saved ({share:.1} %){GOOD:#}")
    }
}

fn percent_less(now: u64, before: u64) -> f64 {
    ratio(before.saturating_sub(now), before) * 100.0
}

#[cfg(test)]
mod tests {
    use super::difference_in_words;

    #[test]
    fn what_costs_more_is_not_called_a_saving() {
        assert_eq!(difference_in_words(4.5, 3.0), "$1.50 more (50.0 %)");
        assert!(difference_in_words(1.5, 3.0).contains("$1.50 saved (50.0 %)"));
    }
}
