-- Tells the other hubs that this one is alive and what it counted in total; returns the same of them, and the shared state.
--
-- KEYS 1 hubs, a hash by id; 2 the store's state, a hash
-- ARGV 1 the time (see time.lua), 2 this hub's id, 3 its totals as JSON, 4 ms of silence after which a hub counts as gone
-- Returns {time of this server in ms, epoch, version of the rules, switch, newest change, then id and totals of each other
-- hub}.
redis.call('HSET', KEYS[1], ARGV[2], string.format('%.0f %s', now, ARGV[3]))
local state = redis.call('HMGET', KEYS[2], 'epoch', 'rulesVersion', 'isOff', 'line')
-- Search from the end: an unanchored pattern takes a millisecond in a line of a hundred changes.
local head = string.match(' ' .. (state[4] or ''), '^.* (%S+) $') or ''
local answer = { now, state[1] or '', tonumber(state[2] or 0), tonumber(state[3] or 0), head }
local hubs = redis.call('HGETALL', KEYS[1])
for index = 1, #hubs, 2 do
  local at, totals = string.match(hubs[index + 1], '^(%d+) (.*)$')
  if now - tonumber(at) > tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[1], hubs[index])
  elseif hubs[index] ~= ARGV[2] then
    -- This server's clock was set back: measure the hub's silence from now on.
    if tonumber(at) > now then redis.call('HSET', KEYS[1], hubs[index], string.format('%.0f %s', now, totals)) end
    answer[#answer + 1] = hubs[index]
    answer[#answer + 1] = totals
  end
end
return answer
