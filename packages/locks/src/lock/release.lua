-- Frees a lock and wakes the waiters.
--
-- KEYS 1 lock hash
-- ARGV 1 owner, 2 channel (not a key: a client would put its key prefix before it), 3 SPUBLISH on a cluster
-- Returns 1 + the number of processes that were notified when freed, 0 when the owner no longer had the lock.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
return 1 + redis.call(ARGV[3] or 'PUBLISH', ARGV[2], '0')
