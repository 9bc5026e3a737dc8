-- Frees a lock and wakes the waiters.
--
-- KEYS 1 lock hash, 2 channel
-- ARGV 1 owner, 2 SPUBLISH on a cluster
-- Returns 1 + the number of processes that were notified when freed, 0 when the owner no longer had the lock.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
return 1 + redis.call(ARGV[2] or 'PUBLISH', KEYS[2], '0')
