-- Makes a store large that has one session with two requests, of which the second goes on from the first. That session gets 2,000
-- requests, each the second again with all that it hid; 19,999 other sessions get one request each.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1998)
INSERT INTO request (session, at, format, model, bytes, tokens_before, tokens_after, base, front, back, parts, same_blocks, plan, tip, extended, usage)
SELECT session, at + i * 1000, format, model, bytes, tokens_before, tokens_after, id, front, back, parts, 1000000, NULL, tip, extended, usage
FROM request, n WHERE id = 2;

UPDATE session SET requests = 2000, last_at = last_at + 1998000;

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO session (name, first_at, last_at, requests, project)
SELECT NULL, first_at, first_at + i, 1, project FROM session, n WHERE id = 1;

INSERT INTO request (session, at, format, model, bytes, tokens_before, tokens_after, base, front, back, parts, same_blocks, plan, tip, extended, usage)
SELECT s.id, r.at, r.format, r.model, r.bytes, r.tokens_before, r.tokens_after, r.base, r.front, r.back, r.parts, r.same_blocks, r.plan, r.tip, r.extended, r.usage
FROM session s, request r WHERE s.id > 1 AND r.id = 1;
