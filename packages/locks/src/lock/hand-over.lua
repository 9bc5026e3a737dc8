-- Hands a lock to another task of the same process. Wakes nobody, because the lock is never free.
--
-- Ends with next-token.lua. If it is sent again because its reply was lost, it finds the next owner in place and issues a
-- newer token.
--
-- KEYS 1 lock hash, 2 token counter, 3 token epoch
-- ARGV 1 owner, 2 next owner, 3 its lease ms, 4 to 6 the arguments of next-token.lua: floor, isFirst, memoryMs
-- Returns the next owner's token, or 0 when the owner no longer had the lock.
local lock, heir = KEYS[1], ARGV[2]
if redis.call('HDEL', lock, ARGV[1]) == 0 and redis.call('HEXISTS', lock, heir) == 0 then return 0 end
redis.call('HSET', lock, heir, '1')
redis.call('PEXPIRE', lock, ARGV[3])
local counter, epoch, floor, isFirst, memoryMs = KEYS[2], KEYS[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
