-- Units held at the same time (see concurrency.ts).
-- State: a sorted set; the score is when a hold ends, a member 'id:n' is one unit of a request.
-- Parameters: limit, lease in ms.
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
    local first = 0
    while call('ZSCORE', s.key, format('%s:%.0f', id, first)) do first = first + 1 end
    for unit = first, first + units - 1 do
      call('ZADD', s.key, s.stop, format('%s:%.0f', id, unit))
    end
    s.used = s.used + units
    s.dirty = true
  end,
  refund = function(s, units, id)
    if id == '' then
      call('ZREMRANGEBYRANK', s.key, 0, units - 1)
    else
      local unit = 0
      while units > 0 and call('ZREM', s.key, format('%s:%.0f', id, unit)) == 1 do
        unit, units = unit + 1, units - 1
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
