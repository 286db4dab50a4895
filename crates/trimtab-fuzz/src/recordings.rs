//! Recordings: whatever a file holds, a reader takes it or says why not, and every request that a recording tells of is one
//! that can be read and written back.

use trimtab_core::{parse_as, write};
use trimtab_replay::read;

/// Checks a transcript file.
pub fn check_recording(data: &[u8]) {
    let recording = match read(data) {
        Ok(recording) => recording,
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            return;
        }
    };
    for problem in &recording.problems {
        assert!(!problem.to_string().is_empty());
    }
    for segment in &recording.segments {
        let history = &segment.history;
        assert!(write(history, &[]) == history.bytes());
        // Many requests of a long session are the same but for their length.
        for point in segment.points.iter().take(3).chain(segment.points.last()) {
            assert!(point.messages <= history.messages().len(), "{point:?}");
            let request = segment.request_at(point);
            let read = parse_as(request.clone(), history.format()).expect("a request");
            assert_eq!(read.messages().len(), point.messages);
            assert!(write(&read, &[]) == request);
        }
    }
}
