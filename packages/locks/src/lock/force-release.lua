-- Frees a lock, whoever holds it, and wakes the waiters.
--
-- KEYS 1 lock hash
-- ARGV 1 channel, 2 PUBLISH or SPUBLISH
-- Returns 1 when there was a holder, 0 otherwise.
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[2], ARGV[1], '0')
return 1
