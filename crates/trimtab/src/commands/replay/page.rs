//! The report as one page: [`write_page`]. Takes what was replayed; gives HTML that needs nothing else, drawn with the components
//! of all pages. First the answer, then one chart, then what was missed; everything else is folded. Words of recordings are
//! text there, never markup.

mod chart;
mod figures;
mod misses;
mod sessions;

use maud::{Markup, html};
use trimtab_core::prices::{CostUnit, prices_date};
use trimtab_replay::ScoreRow;

use super::{
    ReplayResults,
    sentence::{TOLD, format_cost, missed_count, summary_sentences},
    table::CERTIFIES,
};
use crate::{
    look::{FigureTile, PageFrame, TileTone, page, percent_change, tiles},
    output::{count_with_noun, group_thousands},
};

/// What a page is about: one policy at the first model and budget, and the rows that it is compared with.
struct PageSubject<'a> {
    replayed: &'a ReplayResults,
    ours: &'a ScoreRow,
    /// All rows of the same model and budget, those of the policy included.
    rows: Vec<&'a ScoreRow>,
}

impl<'a> PageSubject<'a> {
    /// Chooses the policy that the page is about: the default one where it takes part.
    fn choose(replayed: &'a ReplayResults) -> Option<PageSubject<'a>> {
        let (model, budget) = (replayed.models.first()?, replayed.budgets.first()?);
        let of_first = replayed.rows.iter().filter(|row| row.model == model.name && row.budget == *budget);
        let rows: Vec<&ScoreRow> = of_first.collect();
        let told = TOLD.iter().find_map(|name| rows.iter().find(|row| row.policy == *name));
        let ours = told.or_else(|| rows.iter().find(|row| row.policy != "none")).or(rows.first()).copied()?;
        Some(PageSubject { replayed, ours, rows })
    }

    fn unit(&self) -> CostUnit {
        self.ours.unit
    }

    /// Returns how many sessions, as words.
    fn session_count(&self) -> String {
        count_with_noun(usize::try_from(self.ours.sessions).unwrap_or(usize::MAX), "session", "sessions")
    }

    /// Returns the place of a contender's scores at the first model and budget among those of a session.
    fn column_of(&self, policy: &str) -> Option<usize> {
        let place = self.replayed.entrants.iter().position(|entrant| entrant.name == policy)?;
        Some(place * self.replayed.models.len().max(1) * self.replayed.budgets.len().max(1))
    }
}

/// Writes the page.
pub(super) fn write_page(replayed: &ReplayResults) -> Vec<u8> {
    let main = PageSubject::choose(replayed).map_or_else(|| html! {}, |subject| page_body(&subject));
    page(&PageFrame::standing_alone("trimtab replay"), &main).into_string().into_bytes()
}

fn page_body(subject: &PageSubject<'_>) -> Markup {
    let PageSubject { replayed, ours, .. } = subject;
    let budget = ours.budget.as_ref().map_or_else(String::new, |budget| format!(" · budget {budget}"));
    html! {
        h1 { (headline(subject)) }
        p.soft {
            (group_thousands(ours.requests)) " requests · policy " strong { (ours.policy) } " · " (replayed.prices) (budget) " · "
            a href="#limits" { "what this does and does not show" }
        }
        (tiles(&answer_tiles(subject)))
        (chart::policy_chart(subject))
        (misses::misses_of_ours(subject))
        h2 { "Everything else" }
        (sessions::sessions_section(subject))
        (figures::all_figures(replayed))
        (misses::misses_of_others(subject))
        (limits(subject))
    }
}

fn headline(subject: &PageSubject<'_>) -> String {
    let ours = subject.ours;
    let (saved, unit) = (ours.raw_cost - ours.input_cost, subject.unit());
    let of = format_cost(ours.raw_cost, unit);
    let sessions = if ours.sessions == 1 {
        "this session".to_owned()
    } else {
        format!("these {}", subject.session_count())
    };
    if (ours.cost_vs_raw - 1.0).abs() < 0.0005 {
        format!("{} would have cost the same on {sessions}: {of}", ours.policy)
    } else if saved > 0.0 {
        format!("{} would have saved {} of {of} on {sessions}", ours.policy, format_cost(saved, unit))
    } else {
        format!("{} would have cost {} more than {of} on {sessions}", ours.policy, format_cost(-saved, unit))
    }
}

fn answer_tiles(subject: &PageSubject<'_>) -> Vec<FigureTile> {
    let (ours, unit) = (subject.ours, subject.unit());
    let tone = |good: bool| if good { TileTone::Good } else { TileTone::Bad };
    let what = if unit == CostUnit::Dollars { "input bill" } else { "time of reading" };
    let interval = ours.cost_vs_raw_95.map_or_else(String::new, |[low, high]| {
        format!(" (95 %: {} to {})", percent_change(low - 1.0), percent_change(high - 1.0))
    });
    let bill = FigureTile::new(
        format!("{} → {}", format_cost(ours.raw_cost, unit), format_cost(ours.input_cost, unit)),
        format!("{what}: {}{interval}", percent_change(ours.cost_vs_raw - 1.0)),
    )
    .with_note(format!(
        "{} with what it costs to fetch missed content again",
        percent_change(ours.cost_net_vs_raw - 1.0)
    ))
    .with_tone(tone(ours.cost_vs_raw <= 1.0005));
    let missed = missed_count(ours.edit_anchor_recall, ours.edit_anchors);
    let edits = if ours.edit_anchors == 0 {
        FigureTile::new("–", "edits still possible").with_note("the agent edited no text that it had read")
    } else {
        let of = group_thousands(ours.edit_anchors);
        let held = group_thousands(ours.edit_anchors.saturating_sub(missed));
        let tile = FigureTile::new(format!("{held} of {of}"), "edits whose text was still visible")
            .with_tone(tone(missed == 0));
        match ours.bound_recall_share {
            Some(share) => {
                tile.with_note(format!("{:.1} % of what is possible within the budget", share * 100.0))
            }
            None => tile,
        }
    };
    let rejected =
        FigureTile::new(group_thousands(ours.invalid_requests), "requests that a provider would reject")
            .with_note(format!("of {}", group_thousands(ours.requests)))
            .with_tone(tone(ours.invalid_requests == 0));
    let worst = FigureTile::new(percent_change(ours.worst_session_vs_raw - 1.0), "worst session")
        .with_note(sessions::title_of(subject.replayed, &ours.worst_session))
        .with_tone(tone(ours.worst_session_vs_raw < 1.0105));
    vec![bill, edits, rejected, worst]
}

/// Says what the page does not show, and what it leaves out.
fn limits(subject: &PageSubject<'_>) -> Markup {
    let replayed = subject.replayed;
    html! {
        h2 #limits { "What this does and does not show" }
        p { (CERTIFIES) }
        p {
            "Costs are simulated with the rules of each provider's cache, at prices of " (prices_date()) ". Methods of other tools are \
             re-implemented from their documentation; they set no cache marker. Contenders that begin with " code { "oracle:" }
            " know the future: they show what is possible, and cannot be used."
        }
        @for sentence in summary_sentences(replayed) { p { (sentence) } }
        ul {
            @for left_out in sessions::left_out(replayed) { li { (left_out) } }
            @if replayed.unusable > 0 {
                li { (replayed.unusable) " files could not be replayed; the command named them with the reasons." }
            }
        }
        p.soft.small { "trimtab " (env!("CARGO_PKG_VERSION")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::replay::invented::make_up_results;

    fn check(sessions: u32) -> String {
        let page = String::from_utf8(write_page(&make_up_results(sessions))).expect("UTF-8");
        if let Some(file) = std::env::var_os("TRIMTAB_PAGE") {
            std::fs::write(file, &page).expect("the page");
        }
        page
    }

    #[test]
    fn the_answer_comes_first() {
        let page = check(60);
        let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words}"));
        let order = [
            "<h1>steady would have saved $",
            "class=\"tiles ",
            "<figure",
            "What was missed",
            "Everything else",
        ];
        assert!(order.map(place).is_sorted(), "{:?}", order.map(place));
        assert!(page.matches("<details open").count() == 1, "the median session is open");
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = check(60).replace("&lt;img src=x onerror", "");
        for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "the page asks for something: {outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn words_of_a_recording_are_never_markup() {
        let page = check(20);
        assert!(!page.contains("<img") && !page.contains("</script>"), "markup of a recording got through");
        assert!(page.contains("&lt;img src=x onerror="), "the words are there, as text");
    }

    #[test]
    fn a_page_of_many_sessions_stays_small_and_says_what_it_leaves_out() {
        let page = check(400);
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
        for words in ["24 of 400 sessions", "further misses", "2 files could not be replayed"] {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn nothing_replayed_is_an_empty_page_and_a_single_session_a_whole_one() {
        assert!(check(1).contains("on this session"));
        let mut nothing = make_up_results(1);
        nothing.rows.clear();
        assert!(!write_page(&nothing).is_empty());
    }
}
