-- Takes a lock for an owner that does not hold it yet, or says how long its holder's lease still runs.
--
-- Ends with next-token.lua. The hold count is written, not incremented: a call that is sent again because its reply was
-- lost ends in the same state, with a newer token.
--
-- KEYS 1 lock hash, 2 token counter, 3 token epoch
-- ARGV 1 owner, 2 lease ms; then, unless all are the default, 3 to 5 the arguments of next-token.lua: floor,
--      isFirst, memoryMs
-- Returns the token (> 0) when taken, otherwise -1 - remaining ms of the holder's lease, so 0 if it has no end.
local call, lock, owner = redis.call, KEYS[1], ARGV[1]
if call('EXISTS', lock) == 1 and call('HEXISTS', lock, owner) == 0 then return -1 - call('PTTL', lock) end
call('HSET', lock, owner, '1')
call('PEXPIRE', lock, ARGV[2])
local counter, epoch, floor, isFirst = KEYS[2], KEYS[3], tonumber(ARGV[3] or 0), ARGV[4]
local memoryMs = ARGV[5] or 3600000
