-- The statements of a hub's SQLite store, each under its name.

-- name: getState
SELECT value FROM state WHERE name = :name;

-- name: setState
INSERT INTO state (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: raiseState
INSERT INTO state (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE CAST(value AS REAL) < CAST(excluded.value AS REAL);

-- name: listRules
SELECT rule FROM rules ORDER BY id;

-- name: getRule
SELECT rule FROM rules WHERE id = :id;

-- name: saveRule
INSERT INTO rules (id, rule) VALUES (:id, :rule) ON CONFLICT (id) DO UPDATE SET rule = excluded.rule;

-- name: deleteRule
DELETE FROM rules WHERE id = :id;

-- name: listEntries
SELECT stored FROM entries ORDER BY name;

-- name: saveEntry
INSERT INTO entries (name, stored) VALUES (:name, :stored) ON CONFLICT (name) DO UPDATE SET stored = excluded.stored;

-- name: deleteEntry
DELETE FROM entries WHERE name = :name;

-- name: addHistory
INSERT INTO history (at, kind, redis_cluster_id, key, rule_id, text)
VALUES (:at, :kind, :redisClusterId, :key, :ruleId, :text);

-- name: trimHistory
DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - :keep;

-- name: trimOldHistory
DELETE FROM history WHERE id IN (SELECT id FROM history WHERE at < :before ORDER BY at LIMIT :most);

-- name: keptHistory
SELECT (SELECT coalesce(max(id) - min(id) + 1, 0) FROM history) AS events, (SELECT min(at) FROM history) AS oldest;

-- name: listHistory
SELECT at, kind, redis_cluster_id AS redisClusterId, key, rule_id AS ruleId, text
FROM history
WHERE at >= :since
  AND at < :until
  AND (:redisClusterId IS NULL OR redis_cluster_id = :redisClusterId)
  AND (:ruleId IS NULL OR rule_id = :ruleId)
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
ORDER BY at DESC, id DESC LIMIT :limit;

-- name: listHistoryOfKey
SELECT at, kind, redis_cluster_id AS redisClusterId, key, rule_id AS ruleId, text
FROM history
WHERE at >= :since
  AND at < :until
  AND (:redisClusterId IS NULL OR redis_cluster_id = :redisClusterId)
  AND (:ruleId IS NULL OR rule_id = :ruleId)
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
  AND key = :key
ORDER BY at DESC, id DESC LIMIT :limit;

-- name: addAudit
INSERT INTO audit (at, who, what, before, after, seq, previous, hash)
VALUES (:at, :who, :what, :before, :after, :seq, :previous, :hash);

-- name: trimAudit
DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - :keep;

-- name: listAudit
SELECT at, who, what, before, after, seq, previous, hash FROM audit ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: newestPolicy
SELECT coalesce(max(version), 0) AS version FROM policies;

-- name: addPolicy
INSERT INTO policies (version, stored) VALUES (:version, :stored);

-- name: trimPolicies
DELETE FROM policies WHERE version <= (SELECT max(version) FROM policies) - :keep;

-- name: listPolicies
SELECT stored FROM policies WHERE version > :version ORDER BY version;

-- name: listRecords
SELECT name, value FROM records WHERE kind = :kind;

-- name: saveRecord
INSERT INTO records (kind, name, value) VALUES (:kind, :name, :value)
ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value;

-- name: deleteRecord
DELETE FROM records WHERE kind = :kind AND name = :name;

-- name: saveJob
INSERT OR REPLACE INTO jobs (id, at, due_at, job) SELECT :id, :at, :at, :job
WHERE (SELECT count(*) FROM jobs WHERE id <> :id) < :keep;

-- name: listJobs
SELECT job FROM jobs ORDER BY at, id;

-- name: takeJobs
UPDATE jobs SET due_at = :until WHERE due_at <= :now RETURNING job;

-- name: putOffJob
UPDATE jobs SET at = :at, due_at = :at, job = :job WHERE id = :id;

-- name: deleteJob
DELETE FROM jobs WHERE id = :id;

-- name: saveBlock
INSERT INTO heat_blocks (step_ms, at, writer, data) VALUES (:stepMs, :at, :writer, :data)
ON CONFLICT (step_ms, at, writer) DO UPDATE SET data = excluded.data;

-- name: listBlocks
SELECT at, writer, data FROM heat_blocks WHERE step_ms = :stepMs AND at >= :from AND at < :to ORDER BY at, writer;

-- name: trimBlocks
DELETE FROM heat_blocks WHERE (step_ms, at, writer) IN (
  SELECT step_ms, at, writer FROM heat_blocks WHERE step_ms = :stepMs AND at < :before ORDER BY at LIMIT :most
);

-- name: keptBlocks
SELECT step_ms AS stepMs, sum(length(data)) AS bytes, min(at) AS oldest FROM heat_blocks GROUP BY step_ms ORDER BY step_ms;
