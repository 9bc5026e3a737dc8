-- Writes the hold count of an owner that holds the lock and re-entered it, or left one of several entries.
--
-- KEYS 1 lock hash
-- ARGV 1 owner, 2 hold count after this call, 3 lease ms, or 0 to leave the lease as it is
-- Returns 1 when written, 0 when the owner no longer has the lock.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
