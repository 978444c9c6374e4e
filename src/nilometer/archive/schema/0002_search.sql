-- Schema 2 of the nilometer archive: what runs are searched and charted by, as columns. They are filled from the spec of
-- each run, by the same step that applies this.
--
-- History
-- 1  first schema.
-- 2  columns to search by, copied from spec; one index that answers any search by itself.

ALTER TABLE run ADD COLUMN
    target           TEXT;                 -- what was measured, as spec has it; NULL where spec cannot be read
ALTER TABLE run ADD COLUMN
    model            TEXT;                 -- model asked for
ALTER TABLE run ADD COLUMN
    service_version  TEXT;                 -- label: version of the service
ALTER TABLE run ADD COLUMN
    model_version    TEXT;                 -- label: version of the model
ALTER TABLE run ADD COLUMN
    quantisation     TEXT;                 -- label: its quantisation
ALTER TABLE run ADD COLUMN
    concurrency      INTEGER;              -- requests in flight of a closed loop
ALTER TABLE run ADD COLUMN
    rate_per_s       REAL;                 -- requests, or conversations, a second of an open loop
ALTER TABLE run ADD COLUMN
    arrivals         TEXT;                 -- how an open loop's requests arrive

-- Newest first, with all that a search asks for: no row is read that is not shown.
CREATE INDEX run_search ON run (started_wall_ns DESC, id, service, model, verdict, origin, run_group);
DROP INDEX run_started;
