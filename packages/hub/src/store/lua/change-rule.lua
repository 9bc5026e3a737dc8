-- Saves or deletes one rule and counts the change, so that no hub sees a rule without its version.
--
-- KEYS 1 the rules, a hash by id; 2 the store's state, a hash
-- ARGV 1 the rule's id, 2 the rule as JSON; empty: delete it
-- Returns the version of the rules; the same one where there was nothing to delete.
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
elseif redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return tonumber(redis.call('HGET', KEYS[2], 'rulesVersion') or 0)
end
return redis.call('HINCRBY', KEYS[2], 'rulesVersion', 1)
