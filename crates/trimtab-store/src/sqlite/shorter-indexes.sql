-- Indexes by the beginning of a hash, as handles are: half the size, and as good at finding.
DROP INDEX content_hash;
CREATE INDEX content_handle ON content (substr(hash, 1, 6)) WHERE kind <> 2;
DROP INDEX request_tip;
CREATE INDEX request_tip ON request (substr(tip, 1, 6));
-- Only tidying asks for loose packs, and reads the list of all of them as fast; appending need not keep it.
DROP INDEX pack_loose;
