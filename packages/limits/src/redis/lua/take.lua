-- Decides on the calls of one turn, for one limit and any number of keys: reads, decides, writes and sets the expiry.
--
-- KEYS  for each key its state and its block
-- ARGV  [1], [2] the time (see time.lua); [3] the algorithm; its parameters; then for each key the number of its runs,
--       and for each run the cost, how many calls of this cost stand one after the other, and, where the algorithm
--       names its holds, the request's id
-- Returns { now, then for each run: calls admitted, level after them, ms until one more of them is admitted (-1 never,
--       0 where all were), ms until unused }; level -1 where the key is blocked; { now } alone where the call may not
--       run at this time.
--
-- The calls of one run are decided as if they had come one by one: once one of them does not fit, the next of the same
-- cost at the same time does not either, so the number that is admitted is a division.
local algorithm = algorithms[ARGV[3]]
local p = {}
for index = 1, algorithm.parameters do p[index] = tonumber(ARGV[3 + index]) end
if algorithm.knows and not algorithm.knows(p) then return { now } end

local reply = { now }
local size = 1
local position = 3 + algorithm.parameters
for index = 1, #KEYS, 2 do
  local blocked = blockedMs(KEYS[index + 1])
  local s = algorithm.open(KEYS[index], p)
  position = position + 1
  for _ = 1, tonumber(ARGV[position]) do
    local cost, calls, id = tonumber(ARGV[position + 1]), tonumber(ARGV[position + 2]), ''
    position = position + 2
    if algorithm.named then
      position = position + 1
      id = ARGV[position]
    end
    if blocked > 0 then
      reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, -1, blocked, blocked
    else
      local fits = calls
      if cost > 0 then
        fits = max(0, min(calls, algorithm.fit(s, cost)))
        if fits > 0 then algorithm.charge(s, fits * cost, id) end
      elseif algorithm.fit(s, 1) < 0 then
        fits = 0
      end
      reply[size + 1], reply[size + 2] = fits, algorithm.level(s)
      reply[size + 3], reply[size + 4] = fits < calls and algorithm.retry(s, cost) or 0, algorithm.reset(s)
    end
    size = size + 4
  end
  algorithm.save(s)
end
return reply
