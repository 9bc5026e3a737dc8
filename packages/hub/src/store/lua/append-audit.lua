-- Appends an entry to the audit log, if the entry is chained to the log's head.
--
-- KEYS 1 the store's state, a hash; 2 the audit, a list of JSON, newest first
-- ARGV 1 the audit's head that the entry was chained to, 2 its head with the entry, 3 the entry as JSON, 4 entries to keep
-- Returns {1, the audit's head}, or {-1, head} if the audit has another head: the entry must be chained again.
local audited = redis.call('HGET', KEYS[1], 'auditHead') or ''
if audited ~= ARGV[1] then return { -1, audited } end
redis.call('LPUSH', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
redis.call('HSET', KEYS[1], 'auditHead', ARGV[2])
return { 1, ARGV[2] }
