-- Takes one hub's whole windows for some keys of a bucket, sums the windows of all hubs on this server's clock, decides
-- (enter, change of level, hold, exit), and appends each decision to the outbox, all in one atomic step.
--
-- A window is replaced, not added to. So a post that arrives twice counts once, and a server that lost everything has all
-- of it again one tick later. The slices of a hub that died leave the window one after the other.
--
-- KEYS 1 hot keys, a hash of states by id; 2 timers, a sorted set of ids; 3 outbox, a stream; 4 its sequence;
--      then for each post the key's heat, a hash with a field per hub
-- ARGV 1 the time (see time.lua); 2 JSON {hubId, entryTtlMs, graceMs, recheckMs, maxOutbox}; then for each post JSON as
--      `HeatPost` in heat-board.ts
-- Returns {time of this server in ms, decisions made, then for each post {accesses, writes, bytes} over all hubs and
--      {reads, reads helped, errors} that the other hubs reported}.
local settings = cjson.decode(ARGV[2])
local hotKey, timersKey, outboxKey, sequenceKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
-- How long the counts of a silent key outlive its window. Much longer in tests, whose clock does not advance with the
-- server's.
local heatGraceMs = ARGV[1] == '' and 5000 or 3600000
-- How long the reports of a hub's sensors on a strategy count.
local effectMs = 5000
local decisions = 0

-- The part of one hub's slices, newest first, that lies in the window that ends `at`; the oldest counts in proportion.
local function sumOf(slices, at, headStart, sliceMs, windowMs)
  local sum = 0
  for index, count in ipairs(slices or {}) do
    local sliceEnd = headStart - (index - 1) * sliceMs + sliceMs
    sum = sum + count * math.min(1, math.max(0, (sliceEnd - at + windowMs) / sliceMs))
  end
  return sum
end

-- Writes this hub's window; returns the heat over all hubs, and what the strategy did for the sensors of the others.
local function count(post, heatKey)
  if #post.accesses > 0 then
    local window = { head = now - post.headAgeMs, a = post.accesses, w = post.writes, b = post.bytes, all = {},
      stillUntil = post.awaitedMs and now + post.awaitedMs, writtenAt = now, effect = post.effect, effectAt = now }
    for index, level in ipairs(post.levels) do window.all[index] = level.all or 0 end
    redis.call('HSET', heatKey, settings.hubId, cjson.encode(window))
    redis.call('PEXPIRE', heatKey, math.max(post.windowMs, post.awaitedMs or 0) + heatGraceMs)
  end
  local heat = { accesses = 0, writes = 0, bytes = 0 }
  local effect = { reads = 0, helped = 0, errors = 0 }
  local fields = redis.call('HGETALL', heatKey)
  for index = 1, #fields, 2 do
    local window = cjson.decode(fields[index + 1])
    if window.head > now then
      -- This server's clock was set back: slices from the future count as of now, and age from here.
      window.head, window.effectAt = now, math.min(now, window.effectAt)
      window.stillUntil = nil
      redis.call('HSET', heatKey, fields[index], cjson.encode(window))
    end
    -- Counts of a long interval stand until the next report is due.
    local at = window.stillUntil and now < window.stillUntil and math.min(now, window.writtenAt) or now
    local accesses = sumOf(window.a, at, window.head, post.sliceMs, post.windowMs)
    heat.accesses = heat.accesses + accesses
    -- A hub that only got the timer does not know whose accesses a share refers to: hubs that count the key do.
    for level, all in ipairs(window.all) do
      local mine = post.levels[level]
      if mine and mine.all and accesses > 0 then mine.all = math.max(mine.all, all) end
    end
    heat.writes = heat.writes + sumOf(window.w, at, window.head, post.sliceMs, post.windowMs)
    heat.bytes = heat.bytes + sumOf(window.b, at, window.head, post.sliceMs, post.windowMs)
    if window.effect and fields[index] ~= settings.hubId and now - window.effectAt <= effectMs then
      for name, value in pairs(window.effect) do effect[name] = effect[name] + value end
    end
  end
  heat.reads = heat.accesses - heat.writes
  return heat, effect
end

-- A level's heat and share. A process whose own count crossed the threshold is trusted.
local function read(post, level, heat)
  local value = heat[level.measure]
  if post.claimHeat and level.measure == 'accesses' then value = math.max(value, post.claimHeat) end
  local share
  -- Shares only make sense once all hubs have reported: when a key's timer fires, and while it is hot.
  if level.all and level.all > 0 and (post.isDue or post.isHot) then
    share = value >= level.shareMinimum and math.min(1, heat.accesses / level.all) or 0
  end
  return value, share
end

-- The highest level up to `last` that the key reaches; 'enter' or 'exit' selects the threshold. 0: none.
local function reached(post, heat, last, bound)
  for index = last, 1, -1 do
    local level = post.levels[index]
    local value, share = read(post, level, heat)
    local shareBound = level[bound .. 'Share']
    if value >= level[bound] or (share and shareBound and share >= shareBound) then return index end
  end
  return 0
end

local function decide(kind, post, heat, state, text)
  local level = post.levels[state.level] or post.levels[1]
  local value, share = 0, nil
  if level then value, share = read(post, level, heat) end
  -- Why the level was entered; users see this reason for as long as it lasts.
  if kind == 'hot' or kind == 'strategy' or kind == 'restored' then state.heat, state.share = value, share end
  local decision = { id = post.id, kind = kind, at = now, by = settings.hubId, heat = value, share = share,
    isClaim = post.claimHeat ~= nil, text = text, state = state }
  redis.call('XADD', outboxKey, 'MAXLEN', '~', settings.maxOutbox, '*',
    'n', redis.call('INCR', sequenceKey), 'decision', cjson.encode(decision))
  decisions = decisions + 1
  if kind == 'cooled' or kind == 'rollback' then
    redis.call('HDEL', hotKey, post.id)
  else
    redis.call('HSET', hotKey, post.id, cjson.encode(state))
  end
end

-- Services that touch the key through this hub and were not recorded yet.
local function addServices(state, services)
  local known, isNew = {}, false
  for _, service in ipairs(state.services) do known[service] = true end
  for _, service in ipairs(services) do
    if not known[service] then
      state.services[#state.services + 1] = service
      isNew = true
    end
  end
  return isNew
end

local function moveTo(state, level, post)
  state.level, state.levelSince, state.strategy, state.reason = level, now, post.strategies[level], nil
  return state
end

-- A pre-warmed key: hot in advance, and even without an access until the requested time is over.
local function warm(post, heat, state)
  -- A hub of an earlier version sends no level.
  local level = post.warm.level or 1
  state = state or { level = 0, since = now, services = {} }
  if state.level < level then
    state.level, state.strategy = level, post.warm.strategy or post.strategies[level]
  end
  addServices(state, post.services)
  state.levelSince, state.heldUntil = now - post.minHoldMs, now + post.warm.holdMs
  state.until_, state.reason = now + math.max(settings.entryTtlMs, post.warm.holdMs), post.warm.reason
  state.heat = state.heat or 0
  decide('prewarm', post, heat, state, post.warm.reason)
  return state
end

-- Another strategy at the same level. If several hubs find so at once, the first wins: the others did not know of it.
local function rechoose(post, heat, state)
  local choice = post.rechoose
  if state.strategy ~= choice.from then return end
  state.strategy, state.levelSince = choice.to, now
  if choice.givenUp then
    state.givenUp = state.givenUp or {}
    state.givenUp[choice.givenUp] = now
  end
  decide('rechosen', post, heat, state, choice.why)
end

local function evaluate(post, heat, state)
  if post.warm then return warm(post, heat, state) end
  if post.rechoose and state then rechoose(post, heat, state) end
  local entered = reached(post, heat, #post.levels, 'enter')
  if not state and post.adopt then
    -- Hot before this server lost it: held for a while, because the other hubs have yet to post their counts.
    state = { level = post.adopt.level, since = post.adopt.since, until_ = now + settings.entryTtlMs,
      levelSince = now - post.minHoldMs, heldUntil = math.max(now + settings.graceMs, post.adopt.heldUntil or 0),
      strategy = post.adopt.strategy, services = post.services, reason = post.adopt.reason }
    decide('restored', post, heat, state)
    return state
  end
  if not state then
    if entered == 0 then return nil end
    state = { level = entered, since = now, levelSince = now, until_ = now + settings.entryTtlMs,
      strategy = post.strategies[entered], services = post.services }
    decide('hot', post, heat, state)
    return state
  end
  local isServiceNew = addServices(state, post.services)
  if entered > state.level then
    decide('strategy', post, heat, moveTo(state, entered, post))
    return state
  end
  local held = reached(post, heat, math.min(state.level, #post.levels), 'exit')
  -- If this server's clock was set back: as if it had begun now. The next decision announces it.
  if state.levelSince > now then
    local setBackMs = state.levelSince - now
    state.levelSince, state.until_ = now, state.until_ - setBackMs
    if state.heldUntil then state.heldUntil = state.heldUntil - setBackMs end
    redis.call('HSET', hotKey, post.id, cjson.encode(state))
  end
  local mayLeave = now - state.levelSince >= post.minHoldMs
  if held == 0 and mayLeave and now >= (state.heldUntil or 0) then
    decide('cooled', post, heat, state)
    return nil
  end
  if held > 0 and held < state.level and mayLeave and now >= (state.heldUntil or 0) then
    decide('strategy', post, heat, moveTo(state, held, post))
  elseif state.until_ - now < settings.entryTtlMs / 2 then
    state.until_ = now + settings.entryTtlMs
    decide('extended', post, heat, state)
  elseif isServiceNew then
    decide('services', post, heat, state)
  end
  return state
end

local answer = { now, 0 }
for index = 3, #ARGV do
  local post = cjson.decode(ARGV[index])
  local heatKey = KEYS[index + 2]
  local stored = redis.call('HGET', hotKey, post.id)
  local state = stored and cjson.decode(stored)
  if post.drop then
    if state then decide('rollback', post, { accesses = 0, reads = 0, writes = 0, bytes = 0 }, state, post.drop) end
    redis.call('ZREM', timersKey, post.id)
    redis.call('DEL', heatKey)
    answer[index] = { 0, 0, 0, 0, 0, 0 }
  else
    local isFirst = redis.call('EXISTS', heatKey) == 0
    post.isHot = state ~= false
    local heat, others = count(post, heatKey)
    state = evaluate(post, heat, state)
    -- A hot key is examined again even if nobody posts it any more; a new one is once all hubs have reported it.
    if state then
      redis.call('ZADD', timersKey, now + settings.recheckMs, post.id)
    elseif post.isDue then
      redis.call('ZREM', timersKey, post.id)
    elseif isFirst or post.hasShare then
      redis.call('ZADD', timersKey, 'NX', now + post.settleMs, post.id)
    end
    answer[index] = { tostring(heat.accesses), tostring(heat.writes), tostring(heat.bytes), tostring(others.reads),
      tostring(others.helped), tostring(others.errors) }
  end
end
answer[2] = decisions
return answer
