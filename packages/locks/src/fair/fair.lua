-- The queue of a fair lock. The fair lock's scripts are appended to this file and use its functions.
--
-- KEYS 1 lock hash, 2 queue (list of owners), 3 alive (owners by the time until which they count as alive), 4 token counter,
--      5 token epoch
-- ARGV 1 waiter ttl ms, 2 PUBLISH or SPUBLISH, 3 prefix of the channels on which instances are notified of their turn,
--      4 channel of releases
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl = tonumber(ARGV[1])

local function forget(owner)
  if redis.call('ZREM', KEYS[3], owner) == 1 then redis.call('LREM', KEYS[2], 1, owner) end
end

-- The first waiter that has shown up recently; those before it are dropped.
local function firstAlive()
  while true do
    local owner = redis.call('LINDEX', KEYS[2], 0)
    if not owner then return nil end
    local patience = redis.call('ZSCORE', KEYS[3], owner)
    if patience and tonumber(patience) > now then return owner end
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], owner)
  end
end

-- Reserves the free lock for the first waiter and notifies it; it has its ttl to claim it. If nobody is queued, the
-- release is announced to anyone else who wants the lock.
local function passOn()
  local owner = firstAlive()
  if not owner then
    redis.call(ARGV[2], ARGV[4], '0')
    return
  end
  forget(owner)
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call(ARGV[2], ARGV[3] .. string.match(owner, '^[^:]*'), owner)
end

