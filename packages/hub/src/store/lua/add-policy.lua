-- Adds a version of the rate-limit policy with its audit entry, or nothing.
--
-- KEYS 1 the policies, a list of JSON, newest first; 2 the store's state, a hash; 3 the audit, a list
-- ARGV 1 the new version, 2 the policy as JSON, 3 policies to keep, 4 the audit entry as JSON, 5 audit entries to keep
-- Returns 1 where it was added, 0 where the newest version is not the one before it.
local newest = tonumber(redis.call('HGET', KEYS[2], 'policyVersion') or 0)
if tonumber(ARGV[1]) ~= newest + 1 then return 0 end
redis.call('HSET', KEYS[2], 'policyVersion', ARGV[1])
redis.call('LPUSH', KEYS[1], ARGV[2])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[3]) - 1)
redis.call('LPUSH', KEYS[3], ARGV[4])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
return 1
