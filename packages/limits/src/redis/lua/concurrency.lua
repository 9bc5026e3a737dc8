-- Units held at the same time (see concurrency.ts).
-- State: a sorted set; the score is when a hold ends, a member 'id:n' is one unit of a request.
--   The units of a request are numbered from 0 without gaps, the one that ends last first: the oldest have the highest
--   numbers, so it is those that end and those that are returned.
-- Parameters: limit, lease in ms.
local function unitOf(id, number) return format('%s:%.0f', id, number) end

local function heldBy(key, id)
  local held = 0
  while call('ZSCORE', key, unitOf(id, held)) do held = held + 1 end
  return held
end

algorithms.concurrency = {
  parameters = 2,
  named = true,
  open = function(s, p)
    local key = s.key
    s.limit, s.lease = p[1], p[2]
    call('ZREMRANGEBYSCORE', key, '-inf', now)
    s.stop, s.dirty = now + s.lease, false
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last and tonumber(last) > s.stop then
      s.stop = absorbedEnd(tonumber(last), s.lease)
      for _, member in ipairs(call('ZRANGEBYSCORE', key, format('(%.0f', s.stop), '+inf')) do
        call('ZADD', key, s.stop, member)
        s.dirty = true
      end
    end
    s.used = call('ZCARD', key)
  end,
  fit = function(s, cost) return floor((s.limit - s.used) / cost) end,
  charge = function(s, units, id)
    for number = heldBy(s.key, id) - 1, 0, -1 do
      call('ZADD', s.key, call('ZSCORE', s.key, unitOf(id, number)), unitOf(id, number + units))
    end
    for number = 0, units - 1 do
      call('ZADD', s.key, s.stop, unitOf(id, number))
    end
    s.used = s.used + units
    s.dirty = true
  end,
  refund = function(s, units, id)
    if id == '' then
      call('ZREMRANGEBYRANK', s.key, 0, units - 1)
    else
      local held = heldBy(s.key, id)
      for number = held - 1, max(held - units, 0), -1 do
        call('ZREM', s.key, unitOf(id, number))
      end
    end
    s.used = call('ZCARD', s.key)
    s.dirty = true
  end,
  level = function(s) return s.used end,
  reset = function(s)
    local last = call('ZRANGE', s.key, -1, -1, 'WITHSCORES')
    return last[2] and tonumber(last[2]) - now or 0
  end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    local rank = s.used + cost - s.limit - 1
    return tonumber(call('ZRANGE', s.key, rank, rank, 'WITHSCORES')[2]) - now
  end,
  save = function(s)
    if s.dirty and s.used > 0 then
      call('PEXPIRE', s.key, algorithms.concurrency.reset(s) + grace)
    end
  end,
}
