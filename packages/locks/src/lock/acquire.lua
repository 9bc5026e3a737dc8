-- Takes a lock for an owner that does not hold it yet, or says how long its holder's lease still runs.
--
-- The hold count is written, not incremented: a call that is sent again because its reply was lost ends in the same
-- state, with a newer token.
--
-- KEYS 1 lock hash, 2 token counter, 3 token epoch
-- ARGV 1 owner, 2 lease ms, optionally 3 a token that the new one must exceed
-- Returns the token (> 0) when taken, otherwise -1 - remaining ms of the holder's lease, so 0 where that has no end.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1 - redis.call('PTTL', KEYS[1])
end
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return nextToken(KEYS[2], KEYS[3], ARGV[3] or 0)
