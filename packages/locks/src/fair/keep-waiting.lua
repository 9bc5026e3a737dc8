-- Keeps the waiters of a process in the queue. Also passes on a lock whose holder died: it is free, but nobody released it.
--
-- ARGV 5… owners
-- Returns the owners that are not in the queue: dropped as dead, or the lock is already reserved for them.
local unknown = {}
for index = 5, #ARGV do
  if redis.call('ZSCORE', KEYS[3], ARGV[index]) then
    redis.call('ZADD', KEYS[3], string.format('%.0f', now + ttl), ARGV[index])
  else
    unknown[#unknown + 1] = ARGV[index]
  end
end
redis.call('PEXPIRE', KEYS[2], ttl * 10)
redis.call('PEXPIRE', KEYS[3], ttl * 10)
if redis.call('EXISTS', KEYS[1]) == 0 and firstAlive() then passOn() end
return unknown
