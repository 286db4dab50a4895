//! The engine for SQLite keeps what every engine promises.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;
mod contract;

use tempfile::TempDir;
use trimtab_store::{Sqlite, Store};

/// An empty store, in a folder that goes with it.
fn empty() -> (TempDir, Box<dyn Store>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("trimtab.db")).expect("a store");
    (folder, Box::new(store))
}

contract::contract! { empty:
    a_request_comes_back_byte_for_byte
    markers_that_move_change_nothing_but_themselves
    every_block_can_be_recalled
    identical_content_is_kept_once
    what_is_hidden_is_remembered_with_its_reason
    memory_is_that_of_the_process_that_wrote_it
    a_hidden_block_is_hidden_in_the_same_words_for_ever
    the_first_verdict_wins_between_processes
    what_a_provider_refused_was_never_sent
    a_verdict_after_two_refused_ones_is_the_one_before_them
    a_conversation_goes_on_in_its_session
    pings_are_kept_with_their_request_and_are_no_requests
    another_try_of_the_same_request_is_the_same_session
    the_same_words_after_an_answer_begin_a_new_session
    two_conversations_with_one_beginning_stay_apart
    the_same_conversation_held_again_is_a_session_of_its_own
    a_branch_stays_in_its_session
    a_rewritten_history_is_still_known_by_its_beginning
    a_compacted_history_is_a_new_session_under_the_same_name
    sub_agents_side_by_side_keep_to_their_own
    a_name_tells_equal_beginnings_apart
    usage_and_times_are_summed_for_each_session
    what_is_reported_again_takes_the_place_of_the_first_report
    summaries_are_kept_in_order
    search_finds_the_best_block_first
    forgetting_one_session_leaves_the_others_whole
    a_verdict_that_two_sessions_share_outlives_one_of_them
    old_sessions_are_forgotten_first
    tidying_changes_nothing_that_is_read
    what_is_not_there_is_named
}

contract::contract! { empty:
    wishes::a_pinned_block_is_whole_in_every_process_until_the_pin_is_taken_back
    wishes::an_undo_waits_until_it_is_free_and_is_granted_once
    wishes::what_is_shown_again_is_said_to_a_process_that_hides_it_still
    wishes::a_wish_is_kept_with_the_session_used_last_that_holds_the_block
    wishes::wishes_that_cannot_be_kept_are_refused_with_the_reason
    wishes::a_forgotten_session_leaves_no_wish_behind
    scopes::two_projects_that_say_the_same_words_keep_to_their_own_sessions
    scopes::a_conversation_that_moves_on_tells_its_project_later
    scopes::search_stays_in_its_scope
    scopes::a_block_tells_who_holds_it
    scopes::secrets_are_neither_shown_nor_found
    scopes::a_retention_forgets_the_oldest_and_spares_what_is_live
    scopes::a_list_of_sessions_is_read_page_by_page
    sent::the_history_of_verdicts_tells_what_each_request_hid
    sent::what_was_sent_comes_back_byte_for_byte
    sent::a_cache_marker_that_was_added_is_part_of_what_was_sent
    sent::what_was_inserted_for_the_cache_is_part_of_what_was_sent
    sent::what_is_rewritten_stays_in_its_form_in_every_process_and_its_original_is_kept
}
