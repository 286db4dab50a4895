-- The project that the agent of a session works in; none where nobody said.
ALTER TABLE session ADD COLUMN project TEXT;
