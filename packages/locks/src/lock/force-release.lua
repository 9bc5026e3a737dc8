-- Frees a lock, whoever holds it, and wakes the waiters.
--
-- KEYS 1 lock hash, 2 channel
-- ARGV 1 PUBLISH or SPUBLISH
-- Returns 1 when there was a holder, 0 otherwise.
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[1], KEYS[2], '0')
return 1
