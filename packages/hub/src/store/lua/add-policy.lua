-- Adds a version of the rate-limit policy and its audit entry, or neither.
--
-- KEYS 1 the policies, a list of JSON, newest first; 2 the store's state, a hash; 3 the audit, a list
-- ARGV 1 the new version, 2 the policy as JSON, 3 policies to keep, 4 the audit entry as JSON, 5 audit entries to keep,
--      6 the audit's head that the entry was chained to, 7 its head with the entry
-- Returns {1, the audit's head} if it was added, {0, head} if the newest version is not the one before it, {-1, head} if
-- the audit has another head.
local newest = tonumber(redis.call('HGET', KEYS[2], 'policyVersion') or 0)
local audited = redis.call('HGET', KEYS[2], 'auditHead') or ''
if tonumber(ARGV[1]) ~= newest + 1 then return { 0, audited } end
if audited ~= ARGV[6] then return { -1, audited } end
redis.call('HSET', KEYS[2], 'policyVersion', ARGV[1])
redis.call('LPUSH', KEYS[1], ARGV[2])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[3]) - 1)
redis.call('LPUSH', KEYS[3], ARGV[4])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
redis.call('HSET', KEYS[2], 'auditHead', ARGV[7])
return { 1, ARGV[7] }
