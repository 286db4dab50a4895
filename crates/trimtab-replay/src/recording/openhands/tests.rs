//! Small event streams, each with the picture of what is read from it.

use crate::recording::picture::check;

#[test]
fn a_call_is_sent_with_its_result_and_parallel_ones_together() {
    check(
        r#"{"trajectory":[{"id":0,"source":"environment","observation":"agent_state_changed","content":"","extras":{}},
        {"id":1,"source":"agent","action":"system","args":{"content":"S","tools":[{"type":"function","function":{"name":"bash"}}]}},
        {"id":2,"source":"user","action":"message","timestamp":"1970-01-01T00:00:01","args":{"content":"Fix it."}},
        {"id":3,"source":"user","action":"recall","args":{"query":"Fix it."}},
        {"id":4,"source":"environment","observation":"recall","content":"","extras":{"repo_name":"r","microagent_knowledge":[{"name":"k","content":"K"}]}},
        {"id":5,"source":"agent","action":"run","args":{"command":"ls"},"llm_metrics":{"accumulated_token_usage":{"prompt_tokens":90,"completion_tokens":9}},
        "tool_call_metadata":{"function_name":"bash","tool_call_id":"c1","model_response":{"id":"r1","model":"m",
        "usage":{"prompt_tokens":50,"completion_tokens":4},"choices":[{"message":{"content":"Look.","role":"assistant",
        "tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{}"}},{"id":"c2","function":{"name":"bash","arguments":"{}"}}]}}]}}},
        {"id":6,"source":"agent","action":"run","args":{"command":"pwd"},"tool_call_metadata":{"function_name":"bash","tool_call_id":"c2","model_response":{"id":"r1"}}},
        {"id":7,"source":"agent","observation":"run","content":"a.py","tool_call_metadata":{"function_name":"bash","tool_call_id":"c1"},
        "extras":{"metadata":{"exit_code":0,"working_dir":"/w","suffix":"\n[Done]"}}},
        {"id":8,"source":"agent","observation":"error","content":"no","tool_call_metadata":{"function_name":"bash","tool_call_id":"c2"},"extras":{}},
        {"id":9,"source":"user","action":"message","args":{"content":"Wait."}},
        {"id":10,"source":"agent","action":"message","args":{"content":"Fixed."},"llm_metrics":{"accumulated_token_usage":{"prompt_tokens":160,"completion_tokens":12,"cache_read_tokens":40}}},
        {"note":"odd"}]}"#,
        &[
            "openhands",
            "session, chat",
            "  tools: bash",
            "  system: S",
            "  user: Fix it.",
            "  user: <REPOSITORY_INFO>/r/</REPOSITORY_INFO>//<EXTRA_INFO>/K/</EXTRA_INFO>",
            "  assistant: Look. + bash#c1 {} + bash#c2 {}",
            "  tool: bash#c1 = a.py/[Done]/[Current working directory: /w]/[Command finished with exit code 0]",
            "  tool: bash#c2 = no/[Error occurred in processing last action]",
            "  user: Wait.",
            "  assistant: Fixed.",
            "  @3 1000ms m 50+0r+0w>4",
            "  @6 1000ms 30+40r+0w>3",
            "line 1: item 12 is neither an action nor an observation",
        ],
    );
}

#[test]
fn a_condensation_puts_a_summary_in_the_place_of_events() {
    check(
        r#"[{"id":0,"source":"user","action":"message","args":{"content":"Fix it."}},
        {"id":1,"source":"agent","action":"run","args":{},"tool_call_metadata":{"function_name":"bash","tool_call_id":"c1"}},
        {"id":2,"source":"agent","observation":"run","content":"a","tool_call_metadata":{"tool_call_id":"c1"}},
        {"id":3,"source":"agent","action":"message","args":{"content":"Well."}},
        {"id":4,"source":"agent","action":"condensation","args":{"forgotten_events_start_id":1,"forgotten_events_end_id":2,"summary":"Looked.","summary_offset":1}},
        {"id":5,"source":"agent","action":"finish","args":{"thought":"","final_thought":"Done."}}]"#,
        &[
            "openhands", "session, chat", "  user: Fix it.", "  assistant: bash#c1 {}",
            "  tool: bash#c1 = a", "  assistant: Well.", "  @1", "  @3", "compaction, chat",
            "  user: Fix it.", "  user: Looked.", "  assistant: Well.", "  assistant: Done.", "  @3",
        ],
    );
}

#[test]
fn old_rows_spell_actions_as_text() {
    check(
        r#"{"instance_id":"demo-1","history":[[{"action":"message","content":"Fix it."},{"observation":"null","content":""}],
        [{"action":"run","command":"ls","thought":"Look."},{"observation":"run","content":"a.py","command_id":-1,"exit_code":0}],
        [{"action":"finish","thought":"Done."}]]}"#,
        &[
            "openhands",
            "session (demo-1), chat",
            "  user: Fix it.",
            "  assistant: Look./<execute_bash>/ls/</execute_bash>",
            "  user: OBSERVATION:/a.py/[Command -1 finished with exit code 0]",
            "  assistant: Done.",
            "  @1",
            "  @3",
        ],
    );
}

#[test]
fn a_delegate_is_a_segment_of_its_own() {
    check(
        r#"[{"source":"user","action":"message","args":{"content":"Book."}},
        {"source":"agent","action":"delegate","args":{"agent":"Browser","inputs":{"task":"Find it."}},"tool_call_metadata":{"function_name":"ask","tool_call_id":"c1"}},
        {"source":"agent","action":"browse","args":{"url":"u","thought":"Go."}},
        {"source":"agent","observation":"browse","content":"page","extras":{}},
        {"source":"agent","observation":"delegate","content":"found","tool_call_metadata":{"tool_call_id":"c1"},"extras":{"outputs":{}}},
        {"source":"agent","action":"message","args":{"content":"Booked."}}]"#,
        &[
            "openhands",
            "session, chat",
            "  user: Book.",
            r#"  assistant: ask#c1 {"agent":"Browser","inputs":{"task":"Find it."}}"#,
            "  tool: ask#c1 = found",
            "  assistant: Booked.",
            "  @1",
            "  @3",
            "sub-agent (agent Browser), chat",
            "  user: Find it.",
            "  assistant: Go./<execute_browse>/u/</execute_browse>",
            "  user: OBSERVATION:/page",
            "  @1",
        ],
    );
}
