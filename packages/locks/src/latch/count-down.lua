-- Counts a latch down; at zero it is deleted and everyone is notified.
--
-- Each call has an id, which is remembered while the latch is up: a call that is sent again is not counted twice.
--
-- KEYS 1 count, 2 ids counted
-- ARGV 1 id, 2 channel, 3 PUBLISH or SPUBLISH
-- Returns the count after this call.
local count = tonumber(redis.call('GET', KEYS[1]) or 0)
if count == 0 or redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return count end
if count > 1 then
  redis.call('PEXPIRE', KEYS[2], 86400000)
  return redis.call('DECR', KEYS[1])
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call(ARGV[3], ARGV[2], '0')
return 0
