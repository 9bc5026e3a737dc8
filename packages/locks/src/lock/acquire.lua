-- Takes a lock, or says how long its holder's lease still runs.
--
-- The hold count is written, not incremented: a call that is sent again because its reply was lost ends in the same
-- state. A first acquisition (count 1) always issues a new token, also where the owner's own entry is a leftover.
--
-- KEYS 1 lock hash, 2 token
-- ARGV 1 owner, 2 hold count after this call, 3 lease ms, 4 highest token this client has seen
-- Returns the token (> 0) when taken, 1 for a re-entry; nil when a re-entry finds its lock gone; otherwise
-- -1 - remaining ms of the holder's lease, so 0 where that has no end.
local isFree = redis.call('EXISTS', KEYS[1]) == 0
local isMine = not isFree and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if ARGV[2] ~= '1' and not isMine then return nil end
if not isFree and not isMine then return -1 - redis.call('PTTL', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[2] ~= '1' then return 1 end
return nextToken(KEYS[2], ARGV[4])
