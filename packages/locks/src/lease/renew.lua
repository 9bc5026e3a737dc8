-- Renews the leases of many holders at once.
--
-- KEYS the key of each: a hash with the owner as a field, or a sorted set of owners by the end of their lease
-- ARGV for each key its lease in ms, and a shape and owner: `hash:OWNER` or `set:OWNER`
-- Returns for each key 1 if it was renewed, 0 if the owner is gone.
local answers = {}
local now
for index, key in ipairs(KEYS) do
  local leaseMs = ARGV[index * 2 - 1]
  local shape, owner = string.match(ARGV[index * 2], '^(%a+):(.*)$')
  local isHeld
  if shape == 'hash' then
    isHeld = redis.call('HEXISTS', key, owner) == 1
    if isHeld then redis.call('PEXPIRE', key, leaseMs) end
  else
    if not now then
      local time = redis.call('TIME')
      now = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    local ends = redis.call('ZSCORE', key, owner)
    isHeld = ends and tonumber(ends) > now
    if isHeld then
      redis.call('ZADD', key, string.format('%.0f', now + leaseMs), owner)
      if redis.call('PTTL', key) < tonumber(leaseMs) then redis.call('PEXPIRE', key, leaseMs) end
    end
  end
  answers[index] = isHeld and 1 or 0
end
return answers
