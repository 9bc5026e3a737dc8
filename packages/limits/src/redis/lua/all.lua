-- Checks one call against several limits: either all of them admit it and are charged, or none is.
--
-- KEYS  for each limit its state, and its block if the algorithm does not keep strings
-- ARGV  [1], [2] the time (see time.lua); then for each limit its algorithm, its parameters, the cost and the request id
-- Returns { now, then for each limit: 1 if it admits the call, level after it, ms until it does, ms until unused },
--       or { now } alone if the call may not run at this time.
local limits = {}
local position = 3
while position <= #ARGV do
  local algorithm = algorithms[ARGV[position]]
  local p = parametersOf(algorithm, position + 1)
  position = position + 1 + algorithm.parameters
  if algorithm.knows and not algorithm.knows(p) then return { now } end
  limits[#limits + 1] = { algorithm = algorithm, p = p, s = {}, cost = tonumber(ARGV[position]), id = ARGV[position + 1] }
  position = position + 2
end

local values = call('MGET', unpack(KEYS))
local index = 1
local isAdmitted = true
for _, limit in ipairs(limits) do
  index = openLimit(limit.s, limit.algorithm, limit.p, index, values)
  limit.fits = limit.s.blocked == 0 and (limit.cost == 0 or limit.algorithm.fit(limit.s, limit.cost) >= 1)
  isAdmitted = isAdmitted and limit.fits
end

local reply = { now }
for _, limit in ipairs(limits) do
  local algorithm, s = limit.algorithm, limit.s
  local blocked = s.blocked
  if isAdmitted and limit.cost > 0 then algorithm.charge(s, limit.cost, limit.id) end
  reply[#reply + 1] = limit.fits and 1 or 0
  reply[#reply + 1] = blocked > 0 and -1 or algorithm.level(s)
  reply[#reply + 1] = limit.fits and 0 or blocked > 0 and blocked or algorithm.retry(s, limit.cost)
  reply[#reply + 1] = blocked > 0 and blocked or algorithm.reset(s)
  if blocked == 0 then algorithm.save(s) end
end
return reply
