-- The tables of a hub's SQLite store. Times are milliseconds since 1970; JSON columns hold what the API shows.
-- Keys are JSON strings, because a name may hold U+0000, at which SQLite's text functions end.

CREATE TABLE IF NOT EXISTS state (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS rules (
  id TEXT PRIMARY KEY,
  rule TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS entries (
  name TEXT PRIMARY KEY,
  stored TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS history (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  redis_cluster_id TEXT NOT NULL,
  key TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS history_by_key ON history (redis_cluster_id, key, id);

CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  who TEXT NOT NULL,
  what TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS policies (
  version INTEGER PRIMARY KEY,
  stored TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- A job that a hub has taken is due again at due_at, unless it is deleted before.
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY,
  at REAL NOT NULL,
  due_at REAL NOT NULL,
  job TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The history of heat: ten points of step_ms each, as one hub saw them.
CREATE TABLE IF NOT EXISTS heat_blocks (
  step_ms INTEGER NOT NULL,
  at REAL NOT NULL,
  writer TEXT NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (step_ms, at, writer)
) STRICT, WITHOUT ROWID;
