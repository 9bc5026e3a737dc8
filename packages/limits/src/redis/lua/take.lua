-- Decides on the calls of one turn, for one limit and any number of keys: reads, decides, writes and sets the expiry.
--
-- KEYS  for each key its state, and its block if the algorithm does not keep strings
-- ARGV  [1], [2] the time (see time.lua); [3] the algorithm; its parameters; then the cost of each call, if all have
--       the same cost and no id, or 0. After a cost comes, for each key, the number of calls, or nothing if each has
--       one. After 0 comes, for each key, the number of runs, and for each run its cost, how many calls of this cost
--       follow one after the other, and the request's id if the algorithm names its calls
-- Returns { now, then for each run: calls admitted, level after them, ms until one more of them is admitted (-1 never,
--       0 if all were), ms until unused }; level -1 if the key is blocked; { now } alone if the call may not run at
--       this time.
--
-- The calls of one run are decided as if they had come one by one. Once one does not fit, the next with the same cost at the
-- same time does not fit either, so a division gives the number that is admitted.
local algorithm = algorithms[ARGV[3]]
local p = parametersOf(algorithm, 4)
if algorithm.knows and not algorithm.knows(p) then return { now } end

-- One MGET for all: a call from Lua costs more than the reading does. (It reads nothing from a key that holds no string.)
local values = call('MGET', unpack(KEYS))
local named, fit, charge, save = algorithm.named, algorithm.fit, algorithm.charge, algorithm.save
local level, retry, reset = algorithm.level, algorithm.retry, algorithm.reset
local reply = { now }
local size = 1
local s = {}

local function run(cost, calls, id)
  if s.blocked > 0 then
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, -1, s.blocked, s.blocked
  else
    local fits = calls
    if cost > 0 then
      fits = max(0, min(calls, fit(s, cost)))
      if fits > 0 then charge(s, fits * cost, id) end
    elseif fit(s, 1) < 0 then
      fits = 0
    end
    reply[size + 1], reply[size + 2] = fits, level(s)
    reply[size + 3], reply[size + 4] = fits < calls and retry(s, cost) or 0, reset(s)
  end
  size = size + 4
end

local position = 4 + algorithm.parameters
local sameCost = tonumber(ARGV[position])
local index, last = 1, #KEYS
while index <= last do
  index = openLimit(s, algorithm, p, index, values)
  position = position + 1
  if sameCost > 0 then
    run(sameCost, tonumber(ARGV[position] or 1), '')
  else
    for _ = 1, tonumber(ARGV[position]) do
      local cost, calls = tonumber(ARGV[position + 1]), tonumber(ARGV[position + 2])
      position = position + (named and 3 or 2)
      run(cost, calls, named and ARGV[position] or '')
    end
  end
  if s.blocked == 0 then save(s) end
end
return reply
