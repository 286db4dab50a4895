-- Whether the provider refused the request, and its new verdicts: those above the first number, up to the second.
ALTER TABLE request ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request ADD COLUMN verdicts_after INTEGER;
ALTER TABLE request ADD COLUMN verdicts_through INTEGER;
-- The verdict on the same block before this one.
ALTER TABLE verdict ADD COLUMN instead_of INTEGER;
