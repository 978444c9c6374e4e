-- Schema 1 of the nilometer archive. A file of this folder is never changed once released: a change is a new file with
-- the next number. The number applied last stands in PRAGMA user_version; PRAGMA application_id is 0x4E494C4F ("NILO").
--
-- History
-- 1  first schema.
--
-- Nanoseconds are INTEGER. A value that was not measured is NULL or no row, never 0. JSON is UTF-8 text in the words of
-- the Run format (column run.format). A codec's name says how to read the bytes; it never changes its meaning.

-- One load test, whole but for its records.
CREATE TABLE run (
    id               TEXT PRIMARY KEY,     -- 12 random base32 characters
    format           INTEGER NOT NULL,     -- Run format the JSON columns and segments are in
    definitions      INTEGER NOT NULL,     -- version of the definitions behind the figures
    started_wall_ns  INTEGER NOT NULL,     -- wall clock at the start, ns since 1970 UTC; copied from phases, to sort by
    service          TEXT,                 -- name of the service measured; copied from spec, to search by
    origin           TEXT NOT NULL,        -- measured, simulated or imported
    tool             TEXT NOT NULL,        -- program that made the records
    tool_version     TEXT NOT NULL,        -- its version
    verdict          TEXT NOT NULL,        -- admissible, marked or inadmissible
    run_group        TEXT,                 -- id of the group it belongs to; the group may be written after its runs
    role             TEXT,                 -- its part in the group, such as a or b
    level            TEXT,                 -- its load level in the group
    run_order        INTEGER,              -- its place in the group
    parent           TEXT,                 -- run it repeats or was tuned from
    condition_hash   TEXT,                 -- fingerprint of what must agree for a comparison
    records          INTEGER NOT NULL,     -- number of records in its segments
    spec             TEXT NOT NULL,        -- JSON: what was asked for; secrets are ***
    environment      TEXT NOT NULL,        -- JSON: machine, engine, model, client
    phases           TEXT NOT NULL,        -- JSON: borders of the run on its monotonic clock
    health           TEXT NOT NULL,        -- JSON: what the load worker saw of itself; its columns: telemetry 'worker'
    summary          TEXT NOT NULL,        -- JSON: all figures
    findings         TEXT NOT NULL         -- JSON: list of what was concluded
);
CREATE INDEX run_started ON run (started_wall_ns);
CREATE INDEX run_service ON run (service, started_wall_ns);
CREATE INDEX run_of_group ON run (run_group, run_order);

-- Runs that belong together.
CREATE TABLE run_group (
    id               TEXT PRIMARY KEY,     -- 12 random base32 characters
    type             TEXT NOT NULL,        -- quickstart, sweep, repeat, verify, tune or lab
    started_wall_ns  INTEGER NOT NULL,     -- wall clock at the start, ns since 1970 UTC
    spec             TEXT,                 -- TOML of what its runs share; secrets are ***
    parent           TEXT                  -- group it was repeated from
);

-- The figures once more, one a row, to compare and chart across runs without reading JSON. An index over run.summary,
-- written with it and held to it by `nilo runs check`; runs are read from run.summary.
CREATE TABLE summary_value (
    run              TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE, -- whose figure
    scope            TEXT NOT NULL,        -- part of the summary: latency_ms, throughput, requests, ...
    metric           TEXT NOT NULL,        -- name inside that part: ttft, output_tokens_per_s, ok, ...
    stat             TEXT NOT NULL,        -- n, mean, sd, min, p50, p90, p95, p99, max, or value for a single figure
    value            REAL NOT NULL,        -- the figure, in the unit its scope or metric names
    PRIMARY KEY (run, scope, metric, stat)
) WITHOUT ROWID;

-- The records of a run in order of ending, cut into segments, those cut into parts of at most 8 MB.
CREATE TABLE record_segment (
    run              TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE, -- whose records
    n                INTEGER NOT NULL,     -- number of the segment in the run, from 0
    part             INTEGER NOT NULL,     -- number of the part in the segment, from 0; a segment is its parts joined
    codec            TEXT NOT NULL,        -- how to read the segment: columns-1 or json-1
    records          INTEGER NOT NULL,     -- number of records in the segment
    blob             BLOB NOT NULL CHECK (length(blob) <= 8000000), -- the bytes
    PRIMARY KEY (run, n, part)
);

-- What was seen beside the requests: packed columns of numbers over time.
CREATE TABLE telemetry_segment (
    run              TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE, -- whose telemetry
    source           TEXT NOT NULL,        -- who saw it: worker, later also server and device
    n                INTEGER NOT NULL,     -- number of the segment in the source, from 0
    codec            TEXT NOT NULL,        -- how to read it: series-1
    blob             BLOB NOT NULL CHECK (length(blob) <= 8000000), -- the bytes
    PRIMARY KEY (run, source, n)
);

-- A name for one run or one group.
CREATE TABLE tag (
    name             TEXT PRIMARY KEY,     -- the name
    run              TEXT REFERENCES run (id) ON DELETE CASCADE,          -- the run it names, or
    run_group        TEXT REFERENCES run_group (id) ON DELETE CASCADE,    -- the group it names
    CHECK ((run IS NULL) <> (run_group IS NULL))
);
CREATE INDEX tag_of_run ON tag (run);
CREATE INDEX tag_of_group ON tag (run_group);

-- What somebody wrote about one run or one group.
CREATE TABLE note (
    id               INTEGER PRIMARY KEY,  -- number of the note
    run              TEXT REFERENCES run (id) ON DELETE CASCADE,          -- the run it is about, or
    run_group        TEXT REFERENCES run_group (id) ON DELETE CASCADE,    -- the group it is about
    written_wall_ns  INTEGER NOT NULL,     -- wall clock when it was written, ns since 1970 UTC
    text             TEXT NOT NULL,        -- the note
    CHECK ((run IS NULL) <> (run_group IS NULL))
);
CREATE INDEX note_of_run ON note (run);
CREATE INDEX note_of_group ON note (run_group);
