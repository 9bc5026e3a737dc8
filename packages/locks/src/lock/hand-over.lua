-- Frees a lock and takes it for another task of the same process. Nobody is woken: it is not free.
--
-- Sent again because its reply was lost, it finds the next owner in place and issues a newer token.
--
-- KEYS 1 lock hash, 2 token counter, 3 token epoch
-- ARGV 1 owner, 2 next owner, 3 its lease ms, 4 a token that the new one must exceed
-- Returns the next owner's token, or 0 when the lock was not the owner's any more.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return nextToken(KEYS[2], KEYS[3], ARGV[4])
